"""Runs the whole suite: `python -m tests.suite`, which `make test` calls.

1. Tests that need no server, in as many processes as there are processors.
2. Tests that need one (Kafka, PostgreSQL, a whole stack) wait more than they work. They run in three processes, each
   with servers of its own. Nothing runs beside them: on a slow machine they would not be served in time.
3. Those that measure what others are left, in one process.

Each line is printed with the name of its part as it comes, and what failed once more at the end: who keeps only the
end of a log has it. The exit code is the first one of a part that is not 0.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass

SERVERS = "broker or stack or postgres"
# Rooms of which no test needs a server, and one of which all do: who has no use for one does not collect it.
# tests/house/test_servers.py holds them to it.
WITHOUT_SERVERS = ("actions", "golden", "host", "house", "schemas", "sdk", "simulation", "vitals")
ALL_ON_SERVERS = "tests/integration"


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the tests.

    Attributes:
        name: what its lines begin with.
        marks: which tests, as `pytest -m` takes it.
        options: more of pytest's.
    """

    name: str
    marks: str
    options: tuple[str, ...] = ()

    def command(self) -> list[str]:
        """The program that runs it."""
        return [sys.executable, "-m", "pytest", "-m", self.marks, "--durations=10", *self.options]


SERVED = Part(
    "servers",
    f"not long and not alone and ({SERVERS})",
    (
        *("--numprocesses", "3", "--dist", "loadscope"),
        *(f"--ignore=tests/{room}" for room in WITHOUT_SERVERS),
    ),
)
PLAIN = Part(
    "plain",
    f"not long and not alone and not ({SERVERS})",
    ("--numprocesses", "logical", "--dist", "worksteal", f"--ignore={ALL_ON_SERVERS}"),
)
# Nothing runs beside them, so they collect no other room; tests/house/test_servers.py keeps them in this one.
ALONE = Part("alone", "not long and alone", (ALL_ON_SERVERS,))
PARTS = (PLAIN, SERVED, ALONE)
# How pytest begins the lines of what failed, and those that say why.
FAILURE = ("FAILED ", "ERROR ", "E  ")
FAILURES_TOLD = 150


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a part.

    Attributes:
        code: the exit code of pytest.
        seconds: how long it took.
        failures: the lines that tell what failed and why, at most `FAILURES_TOLD` of them.
    """

    code: int
    seconds: float
    failures: tuple[str, ...]


def run(part: Part) -> Run:
    """Run a part to its end."""
    began = time.monotonic()
    # Line by line also where nobody looks.
    environ = os.environ | {"PYTHONUNBUFFERED": "1"}
    failures: list[str] = []
    with subprocess.Popen(
        part.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ
    ) as running:
        for line in running.stdout or ():
            print(f"{part.name:8}| {line}", end="", flush=True)
            if line.startswith(FAILURE) and len(failures) < FAILURES_TOLD:
                failures.append(line.rstrip())
    return Run(running.returncode, time.monotonic() - began, tuple(failures))


def main() -> int:
    """Run all parts.

    Returns:
        The exit code.
    """
    began = time.monotonic()
    found = {part.name: run(part) for part in PARTS}
    for name, ran in found.items():
        for line in ran.failures:
            print(f"{name:8}| {line}")
    for name, ran in found.items():
        outcome = "passed" if ran.code == 0 else f"failed with {ran.code}"
        print(f"{name:8}| {outcome} in {_minutes(ran.seconds)}")
    print(f"all     | {_minutes(time.monotonic() - began)}", flush=True)
    return next((ran.code for ran in found.values() if ran.code != 0), 0)


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"


if __name__ == "__main__":
    sys.exit(main())
