"""A command that a signal ends has first ended what it began, and says by which signal."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from ops.process import PACKAGE_ROOT

# A command of a second's work after it was cancelled, which a second signal does not shorten.
COMMAND = """
import asyncio, os, signal, typer
from ops.signals import run_until_signalled
async def work():
    try:
        print("working", flush=True)
        await asyncio.sleep(600)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.2)
        print("ended", flush=True)
def main():
    run_until_signalled(work())
typer.run(main)
"""


def ended_by(number: signal.Signals, *before: str) -> tuple[int, str]:
    """How the command ends that a signal meets at work, and what it prints from then on."""
    started = subprocess.Popen(
        [*before, sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, text=True, cwd=PACKAGE_ROOT
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "working\n"
    started.send_signal(number)
    if "nohup" in before:
        started.send_signal(signal.SIGTERM)
    printed, _ = started.communicate(timeout=60)
    return started.returncode, printed


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_command_that_a_signal_ends_ends_what_it_began(number: signal.Signals, code: int) -> None:
    # The suite itself may run under nohup.
    assert ended_by(number, "env", "--default-signal=HUP") == (code, "ended\n")


def test_command_under_nohup_goes_on_after_a_hangup() -> None:
    assert ended_by(signal.SIGHUP, "nohup") == (143, "ended\n")
