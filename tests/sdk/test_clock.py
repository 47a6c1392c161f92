"""The clock of leases counts the time that the machine sleeps."""

from __future__ import annotations

import time

import pytest

from placet import clock

SLEPT_S = 3600.0


def test_time_that_the_machine_slept_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    # Linux has two such clocks, and sleep sets only this one forward.
    told = {time.CLOCK_MONOTONIC: 5.0, time.CLOCK_BOOTTIME: 5.0 + SLEPT_S}
    monkeypatch.setattr(time, "clock_gettime", told.__getitem__)
    monkeypatch.setattr(time, "monotonic", lambda: told[time.CLOCK_MONOTONIC])
    assert clock.now() == 5.0 + SLEPT_S


def test_clock_is_never_set_back() -> None:
    told = [clock.now() for _ in range(1000)]
    assert told == sorted(told)
