"""A released function begins within its attempt's lease, or not at all, wherever it waited."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest

import placet
from placet import clock
from placet.execution import AsyncExecution
from placet.lease import Stoppable, alive
from placet.threads import THREADS, Place, Threads, ThreadsByLoop
from tests.sdk.desk import Desk
from tests.sdk.keeping import Keeping
from tests.sdk.runs import running, running_blocking

LEASE_S = 60.0
SHORT_S = 0.3
EARLY_S = 2.0
PATIENCE_S = 60.0
REFUSED = {"status": 409, "code": "already_consumed", "detail": "another attempt has it"}


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not happened():
            await asyncio.sleep(0.005)


@contextmanager
def only_thread_busy(run: AsyncExecution) -> Iterator[threading.Event]:
    """The run's threads are one, which is free once the event is set."""
    is_free = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(is_free.wait, PATIENCE_S)
        run.channel.threads.pool = pool
        try:
            yield is_free
        finally:
            is_free.set()


class Frozen:
    """A process that stands still for `for_s`, each time right before it calls a released function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, for_s: float) -> None:
        self.for_s = for_s
        self.lost_s = 0.0
        monkeypatch.setattr(clock, "now", lambda: time.monotonic() + self.lost_s)
        monkeypatch.setattr(import_module("placet.gated"), "alive", self.alive)

    def stand_still(self) -> None:
        self.lost_s += self.for_s

    @contextmanager
    def alive(self, start: Callable[[], Stoppable] | None) -> Iterator[None]:
        with alive(start):
            self.stand_still()
            yield


async def test_call_that_waits_for_a_thread_is_not_begun_once_its_renewal_was_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk, ran = Desk(lease_s=SHORT_S, refuse_heartbeat=[REFUSED]), list[str]()

    @placet.gated
    def pay(order: str) -> None:
        ran.append(order)

    with caplog.at_level(logging.WARNING, "placet.lease"):
        async with running(desk) as run:
            with only_thread_busy(run) as is_free:
                paying = asyncio.ensure_future(one(pay("c")))
                await until(lambda: caplog.records)
                is_free.set()
                with pytest.raises(
                    placet.OutcomeUnknown, match="was not begun before its lease was over"
                ) as told:
                    await paying
    assert (ran, len(desk.consumed), desk.results) == ([], 1, [])
    # So a worker waits until the call is settled, or its lease has ended in the log.
    assert told.value.call.status == "consumed"


async def one(call: Any) -> Any:
    return await call


@pytest.mark.parametrize("is_async", [True, False])
async def test_process_frozen_for_longer_than_the_lease_does_not_begin_the_function(
    is_async: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    Frozen(monkeypatch, LEASE_S)
    desk, ran = Desk(lease_s=LEASE_S), list[str]()

    async def pay_async(order: str) -> None:
        ran.append(order)

    def pay(order: str) -> None:
        ran.append(order)

    async with running(desk) as run:
        with pytest.raises(placet.OutcomeUnknown):
            await one(run.gated(pay_async if is_async else pay)("c"))
    assert (ran, len(desk.consumed), desk.results) == ([], 1, [])


def test_process_frozen_for_longer_than_the_lease_does_not_begin_the_function_of_a_blocking_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Frozen(monkeypatch, LEASE_S)
    desk, ran = Desk(lease_s=LEASE_S), list[str]()

    def pay(order: str) -> None:
        ran.append(order)

    with running_blocking(desk) as run, pytest.raises(placet.OutcomeUnknown):
        run.gated(pay)("c")
    assert (ran, len(desk.consumed), desk.results) == ([], 1, [])


async def test_process_frozen_between_a_function_and_the_body_that_it_returned_does_not_begin_the_body(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen = Frozen(monkeypatch, 0.0)
    desk, ran = Keeping(lease_s=LEASE_S), list[str]()

    async def body(order: str) -> None:
        ran.append(order)

    def pay(order: str) -> Awaitable[None]:
        frozen.lost_s = LEASE_S
        return body(order)

    async with running(desk) as run:
        pay_gated: Any = run.gated(pay)
        for _ in range(2):
            # The function itself was called: it is not called again.
            with pytest.raises(placet.OutcomeUnknown):
                await pay_gated("c")
    assert (ran, len(desk.consumed), desk.results) == ([], 1, [])


async def test_call_that_was_not_begun_and_is_made_again_runs_if_its_lease_can_still_be_renewed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen = Frozen(monkeypatch, LEASE_S * 0.95)
    desk, ran = Keeping(lease_s=LEASE_S), list[str]()

    def pay(order: str) -> str:
        ran.append(order)
        return f"paid {order}"

    async with running(desk) as run:
        pay_gated: Any = run.gated(pay)
        with pytest.raises(placet.OutcomeUnknown):
            await pay_gated("c")
        frozen.for_s = 0.0
        assert await pay_gated("c") == "paid c"
    assert (ran, len(desk.calls)) == (["c"], 1)
    assert desk.heartbeats
    assert {one["attempt_id"] for one in desk.consumed} == {desk.results[0]["attempt_id"]}


@pytest.mark.parametrize("at_once", [True, False])
async def test_call_is_consumed_once_a_thread_is_free_for_it(at_once: bool) -> None:
    desk, goes_on = Desk(at_once=at_once, lease_s=LEASE_S), threading.Event()
    consumed = list[int]()

    async with running(desk) as run:
        run.channel.threads.free = asyncio.Semaphore(1)

        @run.gated
        def pay(order: str) -> str:
            assert goes_on.wait(PATIENCE_S)
            consumed.append(len(desk.consumed))
            return f"paid {order}"

        @run.gated
        async def look(order: str) -> None: ...

        first = asyncio.ensure_future(one(pay("a")))
        await until(lambda: desk.consumed)
        second = asyncio.ensure_future(one(pay("b")))
        await until(lambda: len(desk.calls) == 2)
        # Three more exchanges on the same socket: the second call's consumption would have come before them.
        await look("c")
        assert len(desk.consumed) == 2
        goes_on.set()
        assert [await first, await second] == ["paid a", "paid b"]
    assert consumed == [2, 3]
    assert len(desk.results) == 3


async def test_call_that_was_held_or_abandoned_leaves_its_thread_to_others() -> None:
    desk = Desk(judge=lambda desk, call: {**call, "status": "held", "hold_id": "h1"})
    async with running(desk) as run:
        run.channel.threads.free = asyncio.Semaphore(1)

        @run.gated(timeout_s=0.01)
        def pay(order: str) -> None: ...

        for order in ("a", "b"):
            with pytest.raises(placet.StillHeld):
                await one(pay(order))
        assert not run.channel.threads.free.locked()


async def test_worker_has_a_thread_for_each_of_its_turns() -> None:
    client = placet.AsyncPlacet("http://127.0.0.1:9", token="t")

    async def agent(turn: placet.AsyncTurn) -> str:
        return ""

    serving = asyncio.create_task(client.serve({"bot": agent}, concurrency=50))
    await asyncio.sleep(0)
    threads = client.channel.threads
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    await client.close()
    assert threads.most == 50
    for _ in range(50):
        assert not threads.free.locked()
        await threads.free.acquire()
    assert threads.free.locked()


class EarlyRenewals(Desk):
    """As the gateway: a lease runs from its consumption, and a renewal in its first half changes nothing."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.lost = 1
        self.until: dict[str, float] = {}

    async def frame(self, peer: Any, message: dict[str, Any]) -> None:
        if message["type"] == "propose" and self.lost:
            self.lost -= 1
            return
        await super().frame(peer, message)

    def on_propose(self, message: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, call = super().on_propose(message)
        if call["status"] == "consumed":
            call["lease_until"] = self.until[call["call_id"]] = time.time() + EARLY_S
        return status, call

    def on_heartbeat(self, message: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, call = super().on_heartbeat(message)
        return status, {**call, "lease_until": self.until[message["call_id"]]}


async def test_call_whose_first_proposal_was_lost_runs_in_the_lease_of_the_second() -> None:
    desk = EarlyRenewals(lease_s=EARLY_S, at_once=True)
    async with running(desk) as run:

        @run.gated
        async def pay(order: str) -> str:
            return f"paid {order}"

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await pay("a")
        await asyncio.sleep(EARLY_S)
        assert await pay("a") == "paid a"


async def test_function_for_which_no_thread_can_be_started_does_not_run_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, ran, is_free = threading.Thread.start, list[str](), threading.Event()
    left = [1]

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith("placet-call"):
            if not left[0]:
                raise RuntimeError("can't start new thread")
            left[0] -= 1
        started(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    desk = Desk(at_once=True, lease_s=LEASE_S)
    async with running(desk) as run:

        def work(order: str) -> str:
            ran.append(order)
            is_free.wait(PATIENCE_S)
            return order

        pay: Any = run.gated(tool="pay")(work)
        first = asyncio.ensure_future(pay("a"))
        await until(lambda: ran)
        with pytest.raises(RuntimeError, match="thread"):
            await pay("b")
        is_free.set()
        assert await first == "a"
        # The thread of the first one may not wait for more yet.
        left[0] = 1
        assert await pay("c") == "c"
    assert ran == ["a", "c"]


def test_client_has_threads_for_each_event_loop() -> None:
    by_loop = ThreadsByLoop()

    async def all_taken() -> int:
        threads = by_loop.here()
        places = [Place(threads) for _ in range(THREADS + 1)]
        waiting = [asyncio.ensure_future(place.reserve()) for place in places]
        await until(lambda: sum(one.done() for one in waiting) == THREADS)
        places[0].leave()
        await asyncio.gather(*waiting)
        return len(waiting)

    assert [asyncio.run(all_taken()) for _ in range(2)] == [THREADS + 1] * 2


async def test_cancellation_that_meets_a_free_place_is_not_lost() -> None:
    for steps in range(5):
        threads = Threads(1)
        first, second = Place(threads), Place(threads)
        await first.reserve()
        went_on = asyncio.Event()

        async def go(place: Place, went_on: asyncio.Event) -> None:
            await place.reserve()
            await asyncio.sleep(0.01)
            went_on.set()

        going = asyncio.ensure_future(go(second, went_on))
        await asyncio.sleep(0)
        first.leave()
        for _ in range(steps):
            await asyncio.sleep(0)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        assert not went_on.is_set()


async def test_call_of_a_paused_run_has_no_thread_while_it_waits() -> None:
    desk = Desk(lease_s=LEASE_S)
    desk.refuse_consumption = [{"status": 409, "code": "not_released", "detail": "paused"}]
    desk.states = ["paused"] * 50
    async with running(desk) as run:

        def work(order: str) -> str:
            return order

        pay: Any = run.gated(tool="pay")(work)
        threads = run.channel.threads
        paying = asyncio.ensure_future(pay("a"))
        await until(lambda: not desk.refuse_consumption)
        await until(lambda: len(desk.states) < 50)
        assert threads.free._value == threads.most
        paying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await paying
        run.result = "left"
