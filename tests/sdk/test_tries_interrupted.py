"""A try that is interrupted where nobody could leave it any more, and one that runs on in its thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module

import pytest

import placet
from placet.sync import RunningExecution
from tests.sdk.desk import ended
from tests.sdk.keeping import Keeping
from tests.sdk.runs import running
from tests.sdk.test_tries import LONG_S, SOON_S, blocking, given_up, paying_into
from tests.sdk.threaded import serving_thread


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("what", ["call", "variables"])
def test_interrupted_while_another_error_comes_out_and_made_again_is_the_same(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Keeping(judge=ended(status="held"))
    with (
        serving_thread(desk.scripted()) as script,
        blocking(script.url) as placet_,
        placet_.execution(id="x") as run,
    ):
        pay = run.gated(timeout_s=0.01)(paying_into([]))
        acts: dict[str, Callable[[], object]] = {
            "call": lambda: pay("c"),
            "variables": lambda: run.ask_env("API_KEY", timeout_s=0.01),
        }
        with monkeypatch.context() as patched:
            patched.setattr(RunningExecution, "give_back", interrupt)
            with pytest.raises(KeyboardInterrupt):
                acts[what]()
        with pytest.raises((placet.StillHeld, placet.NotReleased)):
            acts[what]()
    assert len(desk.calls) + len(desk.questions) == 1


@contextmanager
def _interrupted(start: Callable[[], object] | None) -> Iterator[None]:
    """Signs of life that an interrupt keeps from being ended."""
    assert start is not None
    start()
    interrupt()
    yield


def test_interrupted_before_its_signs_of_life_could_be_ended_it_shows_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Keeping(lease_s=SOON_S)
    monkeypatch.setattr(import_module("placet.gated"), "alive", _interrupted)
    with (
        serving_thread(desk.scripted()) as script,
        blocking(script.url) as placet_,
        suppress(placet.OutcomeUnknown),
        placet_.execution(id="x") as run,
    ):
        pay = run.gated(paying_into([]))
        with pytest.raises(KeyboardInterrupt):
            pay("c")
        time.sleep(2 * SOON_S)
        pay("c")
    assert desk.heartbeats == []


async def test_cancelled_while_its_thread_runs_it_goes_on_showing_signs_of_life() -> None:
    desk, goes_on = Keeping(lease_s=SOON_S), threading.Event()
    async with running(desk) as run:

        @run.gated
        def pay(order: str) -> None:
            assert goes_on.wait(LONG_S)

        await given_up(pay("c"))  # type: ignore[arg-type]
        before = len(desk.heartbeats)
        try:
            async with asyncio.timeout(LONG_S):
                while len(desk.heartbeats) < before + 2:
                    await asyncio.sleep(0.01)
        finally:
            goes_on.set()
