"""The clock of leases counts the time that the machine sleeps."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from placet import clock

SLEPT_S = 3600
_AHEAD = "import time; from placet import clock; print(clock.now() - time.monotonic())"
# A time namespace sets one clock of Linux forward, as sleep does.
_NAMESPACE = ["unshare", "--time", "--boottime", str(SLEPT_S), "--fork"]


def _can_unshare() -> bool:
    return (
        shutil.which("unshare") is not None
        and not subprocess.run([*_NAMESPACE, "true"], capture_output=True).returncode
    )


@pytest.mark.skipif(not _can_unshare(), reason="needs Linux and the right to make a time namespace")
def test_time_that_the_machine_slept_counts() -> None:
    done = subprocess.run(
        [*_NAMESPACE, sys.executable, "-c", _AHEAD], capture_output=True, text=True, check=True
    )
    # A machine that runs these tests may have slept, too.
    assert float(done.stdout) > SLEPT_S - 1


def test_clock_is_never_set_back() -> None:
    told = [clock.now() for _ in range(1000)]
    assert told == sorted(told)
