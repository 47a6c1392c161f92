"""A whole stack as a test sees it: started by the `placet` command, in a directory of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ops.config import DataDir
from ops.daemon import stop_stack
from ops.status import as_protocol, read_stack

T = TypeVar("T")

PLACET = Path(sys.executable).with_name("placet")
COMMAND_TIMEOUT_S = 280.0
# Tests hurry more than agents may; what is refused for it has tests of its own (tests/integration/tight_gateway.py).
QUOTAS = ("--agent-proposals-per-minute", "6000000", "--tenant-proposals-per-minute", "6000000")
READY_WITHIN_S = 120.0


@dataclass(frozen=True)
class RunningStack:
    """A stack's directory and what its commands say."""

    data_dir: Path

    def placet(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of the stack's own commands (up, down, status, doctor)."""
        return run_placet(command, "--data-dir", str(self.data_dir), *arguments)

    def status(self) -> dict[str, Any]:
        """What `placet status --json` says, without a process of its own for each time that a test asks."""
        answer: dict[str, Any] = json.loads(json.dumps(as_protocol(read_stack(DataDir(self.data_dir)))))
        return answer

    def down(self) -> None:
        """Stop it as `placet down` does."""
        stop_stack(DataDir(self.data_dir))

    def components(self) -> dict[str, dict[str, Any]]:
        """Components by name."""
        return {part["name"]: part for part in self.status()["components"]}

    def pid(self, component: str) -> int:
        """A component's process id."""
        return int(self.components()[component]["pid"])

    @property
    def token(self) -> str:
        """The owner's token."""
        return (self.data_dir / "admin.token").read_text(encoding="utf-8").strip()

    def wait_ready(self) -> dict[str, dict[str, Any]]:
        """Wait until every component is ready, and return them."""
        return wait_for(
            self.components, lambda parts: all(part["state"] == "ready" for part in parts.values())
        )


def run_placet(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed `placet` command."""
    return subprocess.run(
        [PLACET, *arguments],
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )


def wait_for(read: Callable[[], T], holds: Callable[[T], bool], within_s: float = READY_WITHIN_S) -> T:
    """Read again and again until it holds; fail with the last value when it does not in time."""
    deadline = time.monotonic() + within_s
    while not holds(value := read()):
        assert time.monotonic() < deadline, f"still {value!r} after {within_s} s"
        time.sleep(0.1)
    return value


@contextmanager
def running_stack(data_dir: Path, *arguments: str) -> Iterator[RunningStack]:
    """A stack that is up, on a free port, and is taken down at the end."""
    stack = RunningStack(data_dir)
    done = stack.placet("up", "--port", "0", "--detach", "--json", *QUOTAS, *arguments)
    assert done.returncode == 0, done.stderr
    try:
        yield stack
    finally:
        stack.down()
