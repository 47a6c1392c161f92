"""How a run ends: with a result that is JSON, or as failed and told so; and what is undone once is undone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import placet
from placet.execution import AsyncExecution
from placet.models import ToolCall
from placet.rollback import undo, undo_blocking
from tests.sdk.desk import Desk
from tests.sdk.keeping import Keeping
from tests.sdk.runs import running
from tests.sdk.test_tries import LONG_S, blocking, given_up
from tests.sdk.threaded import serving_thread

NO_JSON: list[Any] = [{1, 2}, {"n": 2**60}, {1: "a"}, object(), {"deep": [float("nan")]}]


@pytest.mark.parametrize("value", NO_JSON)
async def test_result_that_is_no_json_is_refused_at_the_assignment_and_the_run_goes_on(value: Any) -> None:
    desk = Desk()
    async with running(desk) as run:
        with pytest.raises(placet.ResultNotJson, match=r"^run\.result"):
            run.result = value
        run.result = {"paid": 3}
    assert desk.finished == [{"outcome": "completed", "result": {"paid": 3}}]


async def test_result_that_became_no_json_fails_the_run() -> None:
    desk = Desk()

    async def leave() -> None:
        async with running(desk) as run:
            run.result = found = {"paid": [1]}
            found["paid"].append({2})  # type: ignore[arg-type]

    with pytest.raises(placet.ResultNotJson, match=r"^run\.result\.paid\[1\]"):
        await leave()
    assert [one["outcome"] for one in desk.finished] == ["failed"]
    assert desk.finished[0]["reason"].startswith("ResultNotJson: run.result.paid[1] is a builtins.set")


def test_result_that_is_no_json_fails_a_blocking_run_and_says_why() -> None:
    desk = Desk()
    with serving_thread(desk.scripted()) as script, blocking(script.url) as placet_:

        def leave() -> None:
            with placet_.execution(id="x") as run:
                run.result = {1, 2}

        with pytest.raises(placet.ResultNotJson):
            leave()
    assert [one["outcome"] for one in desk.finished] == ["failed"]


async def test_complete_with_what_is_no_json_has_ended_nothing() -> None:
    desk = Desk()
    async with running(desk) as run:
        with pytest.raises(placet.ResultNotJson):
            await run.complete({1, 2})
    assert desk.finished == [{"outcome": "completed"}]


async def test_result_that_the_gateway_refuses_fails_the_run() -> None:
    desk = Desk(refuse_finish=[{"status": 413, "code": "too_large", "detail": "too much"}])

    async def leave() -> None:
        async with running(desk) as run:
            run.result = "x"

    with pytest.raises(placet.Refused, match="too much"):
        await leave()
    assert desk.finished == [{"outcome": "failed", "reason": "Refused: too_large: too much"}]


@pytest.mark.parametrize("code", ["execution_closed", "unavailable"])
async def test_run_that_has_ended_or_may_be_ended_again_is_not_failed(code: str) -> None:
    desk = Desk(refuse_finish=[{"status": 409, "code": code}])

    async def leave() -> None:
        async with running(desk):
            pass

    with pytest.raises(placet.Refused):
        await leave()
    assert desk.finished == []


async def rejected(desk: Keeping, run: AsyncExecution) -> placet.Denied:
    """A rejection that names two calls to undo, of one kind."""
    for place in ("a", "b"):
        await run.gated(_booked)(place)
    ids = list(desk.calls)
    return placet.Denied(ToolCall(run.id, "c9", "denied", tool="pay", raw={"rollback": ids[::-1]}))


async def _booked(place: str) -> str:
    return place


async def test_rollback_that_was_cancelled_and_is_asked_for_again_undoes_nothing_twice() -> None:
    desk, undone = Keeping(), list[str]()
    async with running(desk) as run:
        denied = await rejected(desk, run)

        @run.gated
        async def cancel(place: str) -> str:
            undone.append(place)
            if undone == ["b", "a"]:
                raise ConnectionError
            return place

        async def compensate(call: ToolCall) -> str:
            if call.output == "a" and not waits.is_set():
                await asyncio.sleep(LONG_S)
            return str(await cancel(call.output))

        waits = asyncio.Event()
        await given_up(run.roll_back(denied, {"_booked": compensate}))
        waits.set()
        first = await run.roll_back(denied, {"_booked": compensate})
        again = await run.roll_back(denied, {"_booked": compensate})
    assert [one.done for one in first] == [True, False]
    assert [one.done for one in again] == [True, True]
    assert undone == ["b", "a", "a"]


async def test_rollback_undoes_calls_of_two_executions_that_have_one_id() -> None:
    calls = [ToolCall(execution, "c1", "succeeded", tool="charge") for execution in ("a", "b")]
    undone = list[str]()

    def refund(call: ToolCall) -> None:
        undone.append(call.execution_id)

    await undo(calls, {"charge": refund}, {})
    undo_blocking(calls, {"charge": refund}, {})
    assert undone == ["a", "b"] * 2


def test_rollback_asked_for_again_in_a_blocking_run_undoes_nothing_twice() -> None:
    desk, undone = Keeping(), list[str]()
    with (
        serving_thread(desk.scripted()) as script,
        blocking(script.url) as placet_,
        placet_.execution(id="x") as run,
    ):

        @run.gated
        def book(place: str) -> str:
            return place

        book("a")
        denied = placet.Denied(ToolCall("x", "c9", "denied", raw={"rollback": list(desk.calls)}))
        for _ in range(2):
            assert run.roll_back(denied, {"book": lambda call: undone.append(call.output)})[0].done
    assert undone == ["a"]
