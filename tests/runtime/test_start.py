"""What a decider loads before it has claimed its partitions: each second of it is one in which nothing expires."""

import subprocess
import sys

# None of these is needed to claim a partition or to expire a hold.
NOT_AT_START = {
    "jsonschema",
    "jsonschema_rs",
    "jwt",
    "prompt_toolkit",
    "referencing",
    "rich",
    "sqlglot",
    "typer",
    "yaml",
}
PROGRAM = "import sys, services.runtime.main; print(*{name.partition('.')[0] for name in sys.modules})"


def test_decider_starts_without_what_it_needs_for_some_decisions_only() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    assert NOT_AT_START & set(done.stdout.split()) == set()


def test_what_is_loaded_later_is_all_that_was_left_out() -> None:
    program = f"from services.runtime import deferred_imports; deferred_imports.load(); {PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert {"jsonschema", "jwt", "sqlglot"} <= set(done.stdout.split())
