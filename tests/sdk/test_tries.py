"""A gated call that was left before its caller was told of its end, made again: it is the same call (decision 45)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import placet
from placet import Placet
from placet.execution import AsyncExecution
from placet.sync import RunningExecution
from tests.sdk.desk import Desk, Resource, ended, granted
from tests.sdk.keeping import Keeping
from tests.sdk.runs import running
from tests.sdk.scripted import QUICK, serving
from tests.sdk.test_loopthread import Interrupting
from tests.sdk.threaded import serving_thread

SOON_S = 0.3
LONG_S = 10.0
Pay = Callable[[str], Awaitable[str]]


def paying(run: AsyncExecution, paid: list[str]) -> Pay:
    @run.gated
    async def pay(order: str) -> str:
        paid.append(order)
        return f"paid {order}"

    return pay


def release(desk: Desk) -> None:
    """Somebody approves all that is held."""
    desk.judge = Desk().judge
    for call in desk.calls.values():
        if call["status"] == "held":
            call.update(granted(call, call["arguments"]))


async def given_up(waiting: Awaitable[Any], within_s: float = SOON_S) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(waiting, within_s)


async def test_cancelled_while_held_and_made_again_is_one_call_and_after_a_restart_too() -> None:
    desk, paid = Keeping(judge=ended(status="held", hold_id="h1")), list[str]()
    async with running(desk) as run:
        pay = paying(run, paid)
        await given_up(pay("c"))
        await given_up(pay("c"))
        assert len(desk.calls) == 1
        release(desk)
        assert await pay("c") == "paid c"
    async with running(desk) as restarted:
        assert await paying(restarted, paid)("c") == "paid c"
    assert (paid, len(desk.calls)) == (["c"], 1)


@pytest.mark.parametrize("unanswered", ["propose", "consume", "result"])
async def test_cancelled_with_anything_unanswered_and_made_again_runs_once(unanswered: str) -> None:
    desk, paid = Keeping(unanswered={unanswered}), list[str]()
    async with running(desk) as run:
        pay = paying(run, paid)
        await given_up(pay("c"))
        desk.unanswered.clear()
        assert await pay("c") == "paid c"
    assert (paid, len(desk.calls)) == (["c"], 1)
    assert len({one["attempt_id"] for one in desk.consumed}) == 1


async def test_cancelled_at_the_consumption_and_made_again_in_a_block_entered_anew_runs_once() -> None:
    desk, paid = Keeping(unanswered={"consume"}), list[str]()

    async def pay_in_a_block() -> None:
        async with client.execution(id="x") as run:
            await paying(run, paid)("c")

    async with (
        serving(desk.scripted()) as script,
        placet.AsyncPlacet(script.url, token="t", agent="billing-bot", patience=QUICK) as client,
    ):
        await given_up(pay_in_a_block())
        desk.unanswered.clear()
        await pay_in_a_block()
    assert (paid, len({one["attempt_id"] for one in desk.consumed})) == (["c"], 1)


async def test_cancelled_at_the_consumption_its_attempt_is_renewed_before_it_is_old() -> None:
    desk, paid = Keeping(unanswered={"consume"}, lease_s=2 * SOON_S), list[str]()
    async with running(desk) as run:
        pay = paying(run, paid)
        await given_up(pay("c"), SOON_S * 1.2)
        desk.unanswered.clear()
        assert await pay("c") == "paid c"
    assert [one["attempt_id"] for one in desk.heartbeats] == [desk.consumed[0]["attempt_id"]]


async def test_cancelled_at_the_consumption_a_call_that_was_released_anew_runs_under_a_fresh_attempt() -> (
    None
):
    desk, paid = Keeping(unanswered={"consume"}), list[str]()
    async with running(desk) as run:
        pay = paying(run, paid)
        await given_up(pay("c"))
        desk.unanswered.clear()
        call = next(iter(desk.calls.values()))
        # A person said that it may run again: the earlier attempt is spent.
        call.update(status="released", attempt_id="")
        desk.spent = {desk.consumed[0]["attempt_id"]}
        assert await pay("c") == "paid c"
    assert len({one["attempt_id"] for one in desk.consumed}) == 2


async def test_cancelled_while_it_runs_and_made_again_is_for_a_person_however_often() -> None:
    desk, began = Keeping(), list[str]()

    async def pay(order: str) -> None:
        began.append(order)
        await asyncio.sleep(LONG_S)

    async def pay_however_often() -> None:
        async with running(desk) as run:
            gated = run.gated(pay)
            await given_up(gated("c"))
            for _ in range(2):
                with pytest.raises(placet.OutcomeUnknown):
                    await gated("c")
            await gated("c")

    with pytest.raises(placet.OutcomeUnknown):
        await pay_however_often()
    assert (began, len(desk.calls), desk.results, desk.finished) == (["c"], 1, [], [])


async def test_cancelled_while_its_thread_runs_it_reports_all_the_same_and_again_returns_that() -> None:
    desk, goes_on = Keeping(), threading.Event()
    async with running(desk) as run:

        @run.gated
        def pay(order: str) -> str:
            assert goes_on.wait(LONG_S)
            return f"paid {order}"

        await given_up(pay("c"))  # type: ignore[arg-type]
        with pytest.raises(placet.OutcomeUnknown):
            await pay("c")  # type: ignore[misc]
        goes_on.set()
        async with asyncio.timeout(LONG_S):
            while not desk.results:
                await asyncio.sleep(0.01)
        assert await pay("c") == "paid c"  # type: ignore[misc]
    assert len(desk.results) == 1


async def test_stop_iteration_out_of_a_thread_has_failed() -> None:
    desk = Keeping()
    async with running(desk) as run:

        @run.gated
        def pay(order: str) -> str:
            return next(iter([order][1:]))

        with pytest.raises(RuntimeError, match="StopIteration") as raised:
            await asyncio.wait_for(pay("c"), LONG_S)  # type: ignore[arg-type]
    assert isinstance(raised.value.__cause__, StopIteration)
    assert [one["outcome"] for one in desk.results] == ["failed"]


async def test_one_of_several_equal_calls_cancelled_is_that_one_when_it_is_made_again() -> None:
    desk, paid = Keeping(judge=ended(status="held")), list[str]()
    async with running(desk) as run:
        pay = paying(run, paid)
        waiting: list[asyncio.Task[str]] = []
        for count in range(1, 4):
            waiting.append(asyncio.create_task(pay("c")))  # type: ignore[arg-type]
            async with asyncio.timeout(LONG_S):
                while len(desk.calls) < count:
                    await asyncio.sleep(0.005)
        for task in reversed(waiting[:2]):
            task.cancel()
        await asyncio.wait(waiting[:2])
        again: list[asyncio.Task[str]] = [asyncio.create_task(pay("c")) for _ in range(2)]  # type: ignore[arg-type]
        await asyncio.sleep(SOON_S)
        assert len(desk.calls) == 3
        release(desk)
        assert await asyncio.gather(waiting[2], *again) == ["paid c"] * 3
        assert await pay("c") == "paid c"
    assert len(desk.calls) == 4, "made again after all were told, it is a fourth"


async def test_group_of_tasks_that_one_failure_cancels_makes_the_same_calls_again() -> None:
    desk, paid = Keeping(judge=ended(status="held")), list[str]()

    async def fail() -> None:
        await asyncio.sleep(SOON_S)
        raise LookupError

    async def at_once(pay: Pay) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(pay("c"))  # type: ignore[arg-type]
            group.create_task(fail())

    async with running(desk) as run:
        pay = paying(run, paid)
        with pytest.raises(ExceptionGroup):
            await at_once(pay)
        release(desk)
        await pay("c")
    assert len(desk.calls) == 1


@pytest.mark.parametrize("times", [1, 3])
async def test_result_that_could_not_be_reported_is_for_a_person_and_never_a_second_run(times: int) -> None:
    refused = {"status": 403, "code": "not_authorised"}
    desk, paid = Keeping(refuse_result=[refused]), list[str]()
    async with running(desk) as run:
        pay = paying(run, paid)
        with pytest.raises(placet.ResultNotReported):
            await pay("c")
        for _ in range(times):
            with pytest.raises(placet.OutcomeUnknown):
                await pay("c")
    assert paid == ["c"]


async def test_refused_proposal_made_again_is_the_same_call() -> None:
    desk, paid = Keeping(), list[str]()
    propose, asked = desk.on_propose, list[str]()

    def refuse_once(message: Resource) -> tuple[int, Resource]:
        asked.append(message["body"]["call_id"])
        return propose(message) if len(asked) > 1 else (403, {"code": "not_authorised"})

    desk.on_propose = refuse_once  # type: ignore[method-assign]
    async with running(desk) as run:
        pay = paying(run, paid)
        with pytest.raises(placet.NotAuthorised):
            await pay("c")
        await pay("c")
    assert asked[0] == asked[1]


async def test_failed_and_made_again_is_another_call() -> None:
    desk, tried = Keeping(), list[str]()
    async with running(desk) as run:

        @run.gated
        async def pay(order: str) -> str:
            tried.append(order)
            if len(tried) == 1:
                raise LookupError
            return order

        with pytest.raises(LookupError):
            await pay("c")
        assert await pay("c") == "c"
    assert [one["status"] for one in desk.calls.values()] == ["failed", "succeeded"]


@contextmanager
def interrupting_soon() -> Iterator[None]:
    """Somebody presses Ctrl-C a moment later."""
    timer = threading.Timer(SOON_S, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def blocking(url: str) -> Placet:
    return Placet(url, token="t", agent="billing-bot", patience=QUICK)


def interrupted_at(run: RunningExecution, act: Callable[[], Any], instruction: int) -> bool:
    before = sys.gettrace()
    sys.settrace(Interrupting(instruction))
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_interrupted_at_any_instruction_and_made_again_pays_no_second_time() -> None:
    desk = Keeping()
    with serving_thread(desk.scripted()) as script, blocking(script.url) as placet_:
        instruction, runs = 1, 0
        while True:
            paid: list[str] = []
            desk.calls.clear()
            with placet_.execution(id=f"r{instruction}") as run:
                pay = run.gated(tool="pay")(paying_into(paid))
                if not interrupted_at(run, lambda pay=pay: pay("c"), instruction):  # type: ignore[misc]
                    break
                with suppress(placet.OutcomeUnknown):
                    pay("c")
                statuses = [call["status"] for call in desk.calls.values()]
                assert len(statuses) == 1, (instruction, statuses)
                assert len(paid) <= 1, instruction
            instruction, runs = instruction + 7, runs + 1
    assert runs > 20, "the call was not interrupted"


def paying_into(paid: list[str]) -> Callable[[str], str]:
    def pay(order: str) -> str:
        # From here on it is the function's own affair.
        sys.settrace(None)
        paid.append(order)
        return order

    return pay


def test_interrupted_while_held_and_made_again_is_one_call() -> None:
    desk = Keeping(judge=ended(status="held"))
    with (
        serving_thread(desk.scripted()) as script,
        blocking(script.url) as placet_,
        placet_.execution(id="x") as run,
    ):
        pay = run.gated(paying_into([]))
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt), interrupting_soon():
                pay("c")
        release(desk)
        assert pay("c") == "c"
    assert len(desk.calls) == 1


async def test_cancelled_coroutine_in_a_synchronous_run_made_again_is_one_call() -> None:
    desk, paid = Keeping(unanswered={"consume"}), list[str]()
    with (
        serving_thread(desk.scripted()) as script,
        blocking(script.url) as placet_,
        placet_.execution(id="x") as run,
    ):

        @run.gated
        async def pay(order: str) -> str:
            paid.append(order)
            return order

        await given_up(pay("c"))
        desk.unanswered.clear()
        assert await pay("c") == "c"
    assert (paid, len(desk.calls)) == (["c"], 1)
