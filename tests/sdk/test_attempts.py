"""What the end of an agent's function means for its turn, however it ends."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from dataclasses import replace
from typing import Any

import pytest

from placet import (
    AsyncPlacet,
    AsyncTurn,
    Denied,
    HITLPending,
    OutcomeUnknown,
    QuotaExceeded,
    Refused,
    ResultNotReported,
    StillHeld,
    ToolCall,
    Unavailable,
    attempt,
    turn_reports,
)
from placet.hitl import HITLHandler
from placet.models import HumanRequest
from placet.parsing import parse
from placet.turn_errors import deciding
from tests.sdk.scripted import QUICK
from tests.sdk.turns import Turns, worked

CALL = {
    "execution_id": "c",
    "call_id": "k",
    "agent": "bot",
    "tool": "pay",
    "arguments": {},
    "status": "released",
    "hold_id": "call-1",
}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(attempt, "LOOK_AGAIN_S", 0.01)
    monkeypatch.setattr(turn_reports, "TRY_AGAIN_S", 0.01)


async def test_function_that_awaits_what_it_cancelled_itself_fails_its_turn() -> None:
    async def agent(turn: AsyncTurn) -> str:
        inner = asyncio.create_task(asyncio.sleep(10))
        inner.cancel()
        await inner
        return ""

    claimed, failed = await worked(Turns(), agent)
    assert claimed == "claim"
    assert failed.startswith("failed: AgentCancelled: CancelledError")


@pytest.mark.parametrize("is_grouped", [False, True])
async def test_turn_of_a_worker_that_is_stopped_is_given_back_whatever_the_clean_up_raises(
    is_grouped: bool, caplog: pytest.LogCaptureFixture
) -> None:
    turns = Turns()

    async def cleaning() -> None:
        try:
            turns.over.set()
            await asyncio.sleep(60)
        finally:
            raise RuntimeError("clean-up failed")

    async def agent(turn: AsyncTurn) -> str:
        if not is_grouped:
            await cleaning()
        async with asyncio.TaskGroup() as group:
            group.create_task(cleaning())
        return ""

    with caplog.at_level(logging.WARNING, "placet"):
        assert await worked(turns, agent) == ["claim", "yield None"]
    assert "the agent bot was stopped and raised" in caplog.text


async def test_questions_of_a_task_group_suspend_the_turn() -> None:
    async def agent(turn: AsyncTurn) -> str:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(turn.hitl.request_clarification(text)) for text in ("A?", "B?")]
        return " ".join(str(each.result()) for each in asked)

    told = await worked(Turns(answers={"A?": "a", "B?": "b"}), agent, wait_s=0)
    assert told[-1] == "completed: a b"
    assert sum(line.startswith("asked") for line in told) == 2


async def test_question_of_another_run_fails_the_turn_and_says_what_to_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients: list[AsyncPlacet] = []
    kept = AsyncPlacet.serve

    async def serve(self: AsyncPlacet, *args: Any, **more: Any) -> None:
        clients.append(self)
        await kept(self, *args, **more)

    monkeypatch.setattr(AsyncPlacet, "serve", serve)

    async def agent(turn: AsyncTurn) -> str:
        return str(await HITLHandler(clients[0], wait_s=0).request_clarification("Own?"))

    claimed, asked, failed = await worked(Turns(), agent, wait_s=0)
    assert (claimed, asked) == ("claim", "asked Own?")
    assert failed.startswith("failed: WaitsElsewhere")
    assert "use turn.hitl and turn.run" in failed


async def test_result_that_was_not_reported_waits_for_the_person_who_settles_the_call() -> None:
    call = parse(ToolCall, CALL)
    turns = Turns(calls=[{**CALL, "status": "consumed"}, {**CALL, "status": "outcome_unknown"}])

    async def agent(turn: AsyncTurn) -> str:
        raise ResultNotReported(call, "sent", "")

    assert await worked(turns, agent) == ["claim", "yield call-1"]


async def test_turn_that_is_tried_again_pauses_longer_each_time() -> None:
    tried_at: list[float] = []

    async def agent(turn: AsyncTurn) -> str:
        tried_at.append(time.monotonic())
        if len(tried_at) < 4:
            raise QuotaExceeded("quota", 429, "100 subjects have a say")
        return "done"

    told = await worked(Turns(), agent)
    assert told[-1] == "completed: done"
    assert told.count("yield None") == 3
    pauses = [later - earlier for earlier, later in itertools.pairwise(tried_at)]
    assert [pause >= least for pause, least in zip(pauses, (0.05, 0.1, 0.2), strict=True)] == [True] * 3


async def test_worker_that_is_stopped_in_a_pause_gives_the_turn_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "FIRST_PAUSE_S", 3_600.0)
    turns = Turns()

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            turns.over.set()

    async def agent(turn: AsyncTurn) -> str:
        raise QuotaExceeded("quota", 429, "later")

    handler = Told()
    logging.getLogger("placet").addHandler(handler)
    try:
        assert await worked(turns, agent) == ["claim", "yield None"]
    finally:
        logging.getLogger("placet").removeHandler(handler)


async def test_token_source_that_fails_once_ends_no_renewals(caplog: pytest.LogCaptureFixture) -> None:
    turns = Turns(lease_s=0.5)

    def token() -> str:
        if turns.told == ["claim"] and "not renewed" not in caplog.text:
            raise OSError("the issuer is away")
        return "t"

    async def agent(turn: AsyncTurn) -> str:
        while turns.told.count("renew") < 2:
            await asyncio.sleep(0.01)
        return "done"

    with caplog.at_level(logging.WARNING, "placet"):
        told = await worked(turns, agent, token=token)
    assert told[-1] == "completed: done"
    assert "not renewed, and it is tried again: OSError('the issuer is away')" in caplog.text


async def test_text_of_an_error_beside_variables_is_not_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def exposed(self: object) -> bool:
        return True

    monkeypatch.setattr("placet.channel.Channel.is_exposed", exposed)

    async def agent(turn: AsyncTurn) -> str:
        try:
            raise KeyError("hunter2-s3cret")
        except KeyError as error:
            raise ValueError("with hunter2-s3cret") from error

    with caplog.at_level(logging.WARNING, "placet"):
        told = await worked(Turns(), agent)
    assert "hunter2" not in told[-1]
    assert "hunter2" not in caplog.text.replace('"with hunter2-s3cret"', "").replace('"hunter2-s3cret"', "")
    assert "ValueError (its text is not recorded" in caplog.text
    assert "in agent" in caplog.text, "where it was raised"


async def test_reply_that_is_refused_leaves_its_number_to_the_next() -> None:
    async def agent(turn: AsyncTurn) -> str:
        with pytest.raises(Refused):
            await turn.say("x" * 200)
        await turn.say("short")
        return "done"

    assert await worked(Turns(), agent) == ["claim", "reply 1: short", "completed: done"]


async def test_replies_at_once_are_posted_in_order() -> None:
    async def agent(turn: AsyncTurn) -> str:
        await asyncio.gather(turn.say("one"), turn.say("two"))
        return "done"

    told = await worked(Turns(delays={1: 0.1}), agent)
    assert told == ["claim", "reply 1: one", "reply 2: two", "completed: done"]


async def test_reply_that_was_cancelled_is_posted_before_the_next() -> None:
    async def agent(turn: AsyncTurn) -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await turn.say("one")
        await turn.say("two")
        return "done"

    told = await worked(Turns(delays={1: 1.0}), agent)
    assert [line for line in told if line != "renew"] == [
        "claim",
        "reply 1: one",
        "reply 2: two",
        "completed: done",
    ]


async def test_question_whose_time_is_computed_anew_is_the_same_question() -> None:
    until = time.time() + 3600

    async def agent(turn: AsyncTurn) -> str:
        left_s = until - time.time()
        return str(await turn.hitl.request_clarification("Where?", timeout_seconds=left_s))

    told = await worked(Turns(answers={"Where?": "here"}), agent, wait_s=0)
    assert told == ["claim", "asked Where?", "yield h1", "claim", "completed: here"]


UNJUDGED = {**CALL, "status": "proposed", "hold_id": None}
RECORDED = {**UNJUDGED, "digest": "d"}
HELD = {**CALL, "status": "held"}
NO_VERDICT_YET: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "it is held then": ([UNJUDGED, HELD], ["claim", "yield call-1"]),
    "it is held late": ([UNJUDGED] * 30 + [HELD], ["claim", "yield call-1"]),
    "it was consumed then": ([UNJUDGED, {**UNJUDGED, "status": "consumed"}], ["claim", "completed: done"]),
    "it is not recorded yet": ([{}, UNJUDGED, HELD], ["claim", "yield call-1"]),
    "it is never recorded": ([{}], ["claim", "completed: done"]),
    "it is put off": ([RECORDED], ["claim", "yield None", "claim", "completed: done"]),
}


@pytest.mark.parametrize(("calls", "expected"), NO_VERDICT_YET.values(), ids=list(NO_VERDICT_YET))
async def test_turn_waits_for_the_verdict_of_a_call_while_the_decider_is_away(
    calls: list[dict[str, Any]], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "VERDICT_S", 0.1)
    runs = 0

    async def agent(turn: AsyncTurn) -> str:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise StillHeld(parse(ToolCall, UNJUDGED), 0.0)
        return "done"

    assert await worked(Turns(calls=calls), agent) == expected


def test_error_that_decides_of_several_is_one_that_leaves_the_turn_open() -> None:
    call = parse(ToolCall, CALL)
    pending = HITLPending(parse(HumanRequest, {"request_id": "r", "execution_id": "c", "status": "open"}))
    held, unknown, quota = StillHeld(call, 1.0), OutcomeUnknown(call), QuotaExceeded("quota", 429, "")
    unjudged = StillHeld(parse(ToolCall, UNJUDGED), 1.0)
    denied, wrong = Denied(call), ValueError("wrong")
    for several, decides in (
        ([wrong, pending], pending),
        ([quota, held], held),
        ([pending, unjudged], unjudged),
        ([unknown, quota], unknown),
        ([denied, quota], quota),
    ):
        assert deciding(ExceptionGroup("", [wrong, ExceptionGroup("", several)])) is decides
    group = ExceptionGroup("", [wrong, denied])
    assert deciding(group) is group


HASTY = replace(QUICK, request_s=0.5)


@pytest.mark.parametrize("code", ["end", "yield"])
async def test_end_that_no_gateway_takes_for_longer_than_patience_is_reported_later(code: str) -> None:
    turns = Turns(answers={"Where?": "here"}, away={code: 60})

    async def agent(turn: AsyncTurn) -> str:
        return str(await turn.hitl.request_clarification("Where?"))

    told = await worked(turns, agent, wait_s=0, patience=HASTY)
    assert told == ["claim", "asked Where?", "yield h1", "claim", "completed: here"]
    assert turns.away == {code: 0}


async def test_reply_that_no_gateway_took_can_be_said_again() -> None:
    async def agent(turn: AsyncTurn) -> str:
        with pytest.raises(Unavailable):
            await turn.say("A")
        with pytest.raises(Unavailable):
            await turn.say("A")
        turns.away.clear()
        await turn.say("A")
        await turn.say("A")
        return "done"

    turns = Turns(away={"reply": 1_000})
    told = await worked(turns, agent, patience=HASTY)
    assert told == ["claim", "reply 1: A", "reply 2: A", "completed: done"]


async def test_reply_with_details_that_are_no_json_leaves_its_number_to_the_next() -> None:
    async def agent(turn: AsyncTurn) -> str:
        with pytest.raises(TypeError):
            await turn.say("bad", at=object())
        await turn.say("good")
        return "done"

    assert await worked(Turns(), agent) == ["claim", "reply 1: good", "completed: done"]


async def test_turn_that_is_lost_while_its_call_is_unsettled_frees_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    call = parse(ToolCall, {**CALL, "status": "consumed"})
    turns = Turns(calls=[{**CALL, "status": "consumed"}], lost=True, lease_s=0.2)
    runs: list[str] = []

    async def agent(turn: AsyncTurn) -> str:
        runs.append(turn.turn_id)
        if len(runs) == 1:
            turns.again()
            raise OutcomeUnknown(call)
        turns.lost = False
        return "done"

    with caplog.at_level(logging.WARNING, "placet"):
        told = await worked(turns, agent, concurrency=1)
    assert told[-1] == "completed: done"
    assert "a turn was lost" in caplog.text
