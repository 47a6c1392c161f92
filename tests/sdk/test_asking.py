"""Questions of a run: the same one again while nobody has answered, variables anew where they were taken before."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.responses import JSONResponse

import placet
from placet.execution import AsyncExecution
from tests.sdk.desk import ended
from tests.sdk.keeping import Keeping
from tests.sdk.runs import running
from tests.sdk.scripted import Asked
from tests.sdk.test_tries import LONG_S, SOON_S, blocking, given_up, interrupting_soon
from tests.sdk.threaded import serving_thread

QUESTION = "Which account?"


@pytest.fixture(autouse=True)
def short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placet.human_requests.MOST_WAIT_S", 0.05)


@pytest.mark.parametrize("kind", ["clarification", "decision", "permission"])
async def test_question_that_is_open_asked_again_is_the_same_and_answered_another(kind: str) -> None:
    desk = Keeping()
    async with running(desk) as run:
        for _ in range(2):
            asked = await run.ask(QUESTION, kind=kind, timeout_s=0.1)
            assert asked.status == "open"
            await given_up(run.ask(QUESTION, kind=kind))
        assert len(desk.questions) == 1
        desk.answer(asked.request_id, response="rent")
        assert (await run.ask(QUESTION, kind=kind)).response == "rent"
        assert (await run.ask(QUESTION, kind=kind, timeout_s=0.1)).status == "open"
    assert len(desk.questions) == 2


async def test_questions_alike_at_once_are_as_many_and_again_the_same() -> None:
    desk = Keeping()
    async with running(desk) as run:
        for _ in range(2):
            await asyncio.gather(*(run.ask(QUESTION, timeout_s=0.1) for _ in range(3)))
    assert len(desk.questions) == 3


async def test_question_without_an_answer_to_its_asking_is_the_same_again() -> None:
    desk = Keeping(unanswered={"request"})
    async with running(desk) as run:
        await given_up(run.ask(QUESTION))
        desk.unanswered.clear()
        await run.ask(QUESTION, timeout_s=0.1)
    assert len(desk.questions) == 1


def test_question_interrupted_is_the_same_again() -> None:
    desk = Keeping()
    with (
        serving_thread(desk.scripted()) as script,
        blocking(script.url) as placet_,
        placet_.execution(id="x") as run,
    ):
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt), interrupting_soon():
                run.ask(QUESTION)
        assert run.ask(QUESTION, timeout_s=0.1).status == "open"
    assert len(desk.questions) == 1


async def variables(run: AsyncExecution, desk: Keeping, value: str) -> Mapping[str, str]:
    """What `ask_env` brings once somebody gives the open one of its questions."""
    waiting = asyncio.create_task(run.ask_env("K"))
    async with asyncio.timeout(LONG_S):
        while not (unanswered := [one for one in desk.questions.values() if one["status"] == "open"]):
            await asyncio.sleep(0.005)
    desk.give(unanswered[0]["request_id"], "K", value)
    return await waiting


async def test_variables_that_an_earlier_process_took_are_asked_for_anew_after_each_restart() -> None:
    desk = Keeping()
    for restart in range(3):
        async with running(desk) as run:
            assert await variables(run, desk, f"value-{restart}") == {"K": f"value-{restart}"}
            assert len(desk.questions) == restart + 1
    assert [ended["outcome"] for ended in desk.finished] == ["completed"] * 3


async def test_run_failing_after_it_took_variables_reports_the_type_of_its_error_alone() -> None:
    desk = Keeping()

    async def fail() -> None:
        async with running(desk) as run:
            taken = await variables(run, desk, "hunter2")

            @run.gated
            async def connect() -> None:
                raise ConnectionError(f"401 for {taken['K'][::-1]}")

            await connect()

    with pytest.raises(ConnectionError):
        await fail()
    untold = "ConnectionError (its text is not recorded: it can contain sensitive values)"
    assert [desk.results[0]["error"], desk.finished[0]["reason"]] == [untold, untold]


async def test_variables_that_were_erased_since_are_asked_for_anew() -> None:
    desk = Keeping()
    async with running(desk) as run:
        await variables(run, desk, "value-0")
    desk.erased.update(desk.questions)
    async with running(desk) as run:
        assert await variables(run, desk, "value-1") == {"K": "value-1"}


async def test_variables_whose_delivery_was_cancelled_are_taken_by_the_same_attempt() -> None:
    desk = Keeping(unanswered={"take"})
    async with running(desk) as run:
        waiting = asyncio.create_task(run.ask_env("K"))
        await asyncio.sleep(SOON_S)
        desk.give(next(iter(desk.questions)), "K", "value-0")
        await given_up(waiting)
        desk.unanswered.clear()
        assert await run.ask_env("K") == {"K": "value-0"}
    assert len(desk.questions) == 1


async def test_variables_given_by_nobody_are_asked_for_by_the_same_question_until_it_is_rejected() -> None:
    desk = Keeping()
    async with running(desk) as run:
        for _ in range(2):
            with pytest.raises(placet.NotReleased):
                await run.ask_env("K", timeout_s=0.1)
        assert len(desk.questions) == 1
        desk.answer(next(iter(desk.questions)), decision="reject", by="alice", feedback="not today")
        with pytest.raises(placet.NotReleased, match="alice rejected it: not today"):
            await run.ask_env("K")
        assert await variables(run, desk, "value-1") == {"K": "value-1"}
    assert len(desk.questions) == 2


def test_variables_interrupted_are_asked_for_by_the_same_question() -> None:
    desk = Keeping()
    with (
        serving_thread(desk.scripted()) as script,
        blocking(script.url) as placet_,
        placet_.execution(id="x") as run,
    ):
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt), interrupting_soon():
                run.ask_env("K")
        desk.give(next(iter(desk.questions)), "K", "value-0")
        assert run.ask_env("K") == {"K": "value-0"}
    assert len(desk.questions) == 1


async def test_variables_erased_while_they_were_waited_for_are_an_error_and_asked_for_no_second_time() -> (
    None
):
    desk = Keeping()
    script = desk.scripted()

    async def erase(asked: Asked) -> Any:
        if asked.path.endswith("/secrets"):
            return JSONResponse({"code": "expired"}, 409)
        desk.give(next(iter(desk.questions)), "K", "value-0")
        return await desk.http(asked)

    script.on_http = erase
    async with running(desk, script) as run:
        with pytest.raises(placet.Expired):
            await run.ask_env("K")
    assert len(desk.questions) == 1


async def test_question_may_be_given_by_name() -> None:
    desk = Keeping()
    async with running(desk) as run:
        assert (await run.ask(question=QUESTION, timeout_s=0.1)).status == "open"
    assert len(desk.questions) == 1


async def asked_and_left(desk: Keeping, how: str) -> None:
    """A block that is left with a question in this state."""
    async with running(desk) as run:
        if how == "variables":
            with pytest.raises(placet.HITLPending):
                await run.ask_env("K", timeout_s=0)
            return
        asked = await run.ask(QUESTION, timeout_s=0)
        if how == "answered elsewhere":
            desk.answer(asked.request_id, response="rent")
        if how == "answered":
            desk.answer(asked.request_id, response="rent")
            await run.ask(QUESTION)
        if how == "result":
            run.result = "nobody answered"
        if how == "completed":
            await run.complete("nobody answered")


@pytest.mark.parametrize("how", ["open", "variables"])
async def test_run_that_is_left_with_an_open_question_of_its_own_stays_open_and_says_so(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Keeping()
    await asked_and_left(desk, how)
    assert desk.finished == []
    (request_id,) = desk.questions
    assert f"its question {request_id} waits for a person" in caplog.text


@pytest.mark.parametrize("how", ["answered", "answered elsewhere", "result", "completed"])
async def test_run_ends_whose_questions_are_answered_or_that_has_its_result(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Keeping()
    await asked_and_left(desk, how)
    assert [one["outcome"] for one in desk.finished] == ["completed"]
    assert "stays open" not in caplog.text


def test_run_of_a_blocking_client_stays_open_with_its_question() -> None:
    desk = Keeping()
    with serving_thread(desk.scripted()) as script, blocking(script.url) as placet_:
        with placet_.execution(id="x") as run:
            assert run.ask(QUESTION, timeout_s=0).pending
        assert desk.finished == []


@pytest.mark.parametrize("then", ["held", "released", "denied"])
async def test_run_that_is_left_with_a_held_call_of_its_own_stays_open(
    then: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Keeping(judge=ended(status="held", hold_id="h1"))
    async with running(desk) as run:

        @run.gated(timeout_s=0)
        async def send_money(amount: int) -> str:
            raise AssertionError("ran")

        with pytest.raises(placet.StillHeld):
            await send_money(5)
        (call,) = desk.calls.values()
        call["status"] = then
    if then == "denied":
        assert [one["outcome"] for one in desk.finished] == ["completed"]
    else:
        assert desk.finished == []
        assert f"its call {call['call_id']} waits for a person" in caplog.text


async def test_run_stays_open_whose_wait_for_a_held_call_was_cancelled() -> None:
    desk = Keeping(judge=ended(status="held", hold_id="h1"))
    async with running(desk) as run:

        @run.gated
        async def send_money(amount: int) -> str:
            raise AssertionError("ran")

        paying = asyncio.ensure_future(send_money(5))
        async with asyncio.timeout(10):
            while not desk.calls:
                await asyncio.sleep(0.005)
        paying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await paying
    assert desk.finished == []
