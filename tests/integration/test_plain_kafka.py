"""The worked sequence of docs/log-contract.md: its program runs as it stands, and the page shows its records."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys

import pytest

from gateway.identity.issuer import issue
from tests.house.sources import ROOT
from tests.integration.site import Site

pytestmark = [pytest.mark.stack, pytest.mark.broker]

EXAMPLE = ROOT / "examples" / "plain-kafka"
PAGE = ROOT / "docs" / "log-contract.md"
SEQUENCE = re.compile(r"^## A worked sequence$.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The rooms that a program of somebody else's does not have, and the client library.
OURS = {"host", "schemas", "vitals", "services", "projections", "gateway", "ops", "placet", "tests"}


def blocks(text: str) -> list[str]:
    """The records of a sequence, each on one line."""
    return [" ".join(block.split()) for block in text.strip().split("\n\n")]


def fits(shown: str, printed: str) -> bool:
    """Whether a record is as the page shows it; … stands for what is another in each run."""
    pattern = ".+?".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, printed) is not None


def test_worked_sequence_of_the_log_contract_is_what_its_program_does(site: Site) -> None:
    token = issue(site.stack.data_dir / "keys", "billing-bot", ["agent"], "acme", "default", "billing", 300)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PLACET_")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "payment.py"), "acme", "march-invoice"],
        env={
            **plain,
            "PLACET_KAFKA": site.stack.status()["bootstrap_servers"],
            "PLACET_DATA_DIR": str(site.stack.data_dir),
            "PLACET_TOKEN": token,
        },
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    shown = SEQUENCE.search(PAGE.read_text(encoding="utf-8"))
    assert shown is not None, "the page has no worked sequence"
    printed, wanted = blocks(done.stdout), blocks(shown.group(1))
    assert len(printed) == len(wanted), done.stdout
    assert [pair for pair in zip(wanted, printed, strict=True) if not fits(*pair)] == []


def test_program_of_the_worked_sequence_imports_nothing_of_placet() -> None:
    for path in EXAMPLE.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = [
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        ]
        named += [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not {name.partition(".")[0] for name in named} & OURS, path.name
