"""The watch on a worker's event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator

import pytest

from placet import loop_watch
from placet.loop_watch import LoopWatch
from tests.sdk.scripted import DEADLINE_S


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    monkeypatch.setattr(loop_watch, "TICKS_S", 0.02)
    monkeypatch.setattr(loop_watch, "BLOCKED_S", 0.2)
    with caplog.at_level(logging.WARNING, "placet"):
        yield


def blocking_until(caplog: pytest.LogCaptureFixture, lines: int) -> None:
    """Block the loop of this thread until the watch has told it."""
    until = time.monotonic() + DEADLINE_S
    while len(caplog.records) < lines and time.monotonic() < until:
        time.sleep(0.01)


async def test_loop_that_is_blocked_is_told_while_it_is_and_where(caplog: pytest.LogCaptureFixture) -> None:
    watch = LoopWatch()
    blocking_until(caplog, 1)
    time.sleep(0.3)  # noqa: ASYNC251 - it is blocked still
    (record,) = caplog.records
    assert "the event loop is blocked for 0 s" in record.getMessage()
    assert "blocking_until in test_loop_watch.py, line" in record.getMessage()
    await asyncio.sleep(0.1)
    blocking_until(caplog, 2)
    assert len(caplog.records) == 2, "once each time"
    watch.close()


async def test_loop_that_goes_on_is_not_told_and_a_closed_watch_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = LoopWatch()
    (thread,) = [one for one in threading.enumerate() if one.name == "placet-loop-watch"]
    await asyncio.sleep(0.5)
    watch.close()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()
    assert caplog.records == []
