"""Calls that were consumed and not begun when their turn waits for something else, or ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet import (
    AsyncTurn,
    OutcomeUnknown,
    QuotaExceeded,
    StillHeld,
    attempt,
    clock,
    turn_reports,
    unstarted,
)
from placet.chat_models import ClaimedTurn
from placet.errors import Unavailable
from placet.gate import read_call
from placet.models import ToolCall
from placet.parsing import parse
from placet.tries import Attempt
from placet.turn import numbering_of
from placet.unstarted import Unstarted
from tests.sdk.claimed import TURN
from tests.sdk.late import Late, two_workers
from tests.sdk.scripted import Asked

OTHER = {"execution_id": TURN["conversation_id"], "call_id": "other", "tool": "t", "hold_id": "call-h9"}
CLAIMED = parse(ClaimedTurn, {**TURN, "attempt_id": "a", "lease_seconds": 30.0})


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(attempt, "LOOK_AGAIN_S", 0.01)
    monkeypatch.setattr(turn_reports, "TRY_AGAIN_S", 0.01)


@dataclass
class Slow(Late):
    """Releases the call at once, and is slow about the first proposal.

    Attributes:
        before_s, after_s: the time before the proposal is taken and after that, until its answer.
        taken: False if the first proposal is lost.
        other: the statuses of another call, one each time that it is read.
    """

    before_s: float = 0.0
    after_s: float = 0.3
    taken: bool = True
    other: tuple[str, ...] = ()
    _is_first: bool = True

    async def http(self, asked: Asked) -> Response:
        if asked.method == "GET" and asked.path.endswith("/other"):
            status, self.other = self.other[0], self.other[1:] or self.other
            return JSONResponse({**OTHER, "status": status})
        if asked.method == "GET" and "/tool-calls/" in asked.path and not asked.path.endswith(self._id):
            return JSONResponse({"code": "not_found", "detail": "no such call"}, 404)
        if asked.method == "POST" and asked.path.endswith("/tool-calls"):
            return await self._slowly(asked.json())
        return await super().http(asked)

    @property
    def _id(self) -> str:
        return str(self._proposed.get("call_id", "/"))

    async def _slowly(self, body: Any) -> Response:
        is_first, self._is_first = self._is_first, False
        if is_first:
            await asyncio.sleep(self.before_s)
            if not self.taken:
                await asyncio.sleep(self.after_s)
                return JSONResponse({"code": "unavailable", "detail": "away"}, 503)
        if not self._proposed:
            self._proposed = {**body}
            self._decide()
        if is_first:
            await asyncio.sleep(self.after_s)
        return self._propose(body)

    def answer(self, said: str) -> None:
        """A person answers the only question."""
        (request,) = self._requests.values()
        request.update(status="resolved", response=said)


class Asking:
    """Makes the call, and asks beside it."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.begun = 0

    async def __call__(self, turn: AsyncTurn) -> str:
        self.begun += 1
        async with asyncio.TaskGroup() as group:
            read = group.create_task(self.read(turn))
            where = group.create_task(self.beside(turn))
        return f"{read.result()} {where.result()}"

    async def read(self, turn: AsyncTurn) -> str:
        @turn.run.gated
        async def read_file(path: str) -> str:
            self.effects.append(path)
            return f"text of {path}"

        return str(await read_file(path="a"))

    async def beside(self, turn: AsyncTurn) -> str:
        await asyncio.sleep(0.05)
        return str(await turn.hitl.request_clarification("Where?"))


@asynccontextmanager
async def waiting(late: Slow, agent: Any) -> AsyncIterator[list[asyncio.Task[None]]]:
    """The workers, once the call is consumed and a person is asked."""
    async with two_workers(late, agent) as working:
        while not late.call or not late._requests:
            await asyncio.sleep(0.01)
        yield working


@pytest.mark.parametrize("late", [Slow(), Slow(before_s=0.5)], ids=["taken", "on its way"])
async def test_turn_with_a_consumed_call_waits_for_a_question_at_its_worker(late: Slow) -> None:
    agent = Asking()
    async with waiting(late, agent):
        await asyncio.sleep(0.2)
        assert (late.told, late.results, agent.begun) == (["claim", "asked Where?"], [], 1)
        late.answer("here")
        await late.over.wait()
    assert late.told == ["claim", "asked Where?", "completed: text of a here"]
    assert (agent.effects, [one["outcome"] for one in late.results]) == (["a"], ["succeeded"])


async def test_lease_of_the_call_is_renewed_while_a_person_is_waited_for() -> None:
    late, agent = Slow(lease_s=0.3), Asking()
    async with waiting(late, agent):
        while late.heartbeats < 3:
            await asyncio.sleep(0.01)
        late.answer("here")
        await late.over.wait()
    assert agent.effects == ["a"]


async def test_worker_that_is_stopped_while_it_waits_withdraws_the_call() -> None:
    late, agent = Slow(), Asking()
    async with waiting(late, agent) as (first, second):
        second.cancel()
        await asyncio.sleep(0.1)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    why = "the tool did not run: its worker was stopped before it began"
    assert [one["error"] for one in late.results] == [why]
    assert (late.told[:3], agent.effects) == (["claim", "asked Where?", "yield None"], [])


async def test_turn_is_given_back_if_its_proposal_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "UNSEEN_S", 0.1)
    late = Slow(taken=False)
    async with two_workers(late, Asking()):
        await late.over.wait()
    assert late.told == ["claim", "asked Where?", "yield h1"]


async def test_question_is_not_waited_for_as_a_call_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "UNSEEN_S", 1_000.0)
    late = Slow()

    async def agent(turn: AsyncTurn) -> str:
        return str(await turn.run.ask_env("TOKEN", timeout_s=0))

    async with two_workers(late, agent):
        await late.over.wait()
    assert late.told[-1] == "yield h1"


@pytest.mark.parametrize(
    "error",
    [
        QuotaExceeded("quota_exceeded", 429, "too much"),
        OutcomeUnknown(parse(ToolCall, {**OTHER, "status": "outcome_unknown"})),
        StillHeld(parse(ToolCall, {**OTHER, "status": "held"}), 0.0),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_turn_with_a_consumed_call_is_not_given_back_for_another_error(error: Exception) -> None:
    statuses = ("held", "held", "released") if isinstance(error, StillHeld) else ("outcome_unknown", "failed")
    late = Slow(other=statuses)

    class Agent(Asking):
        async def beside(self, turn: AsyncTurn) -> str:
            await asyncio.sleep(0.05)
            if self.begun == 1:
                raise error
            return "after that"

    agent = Agent()
    async with two_workers(late, agent):
        await late.over.wait()
    assert late.told == ["claim", "completed: text of a after that"]
    assert (agent.effects, agent.begun) == (["a"], 2)


@pytest.mark.parametrize("end", ["completed", "failed"])
async def test_call_that_its_turn_ends_without_is_withdrawn(end: str) -> None:
    late, turns = Late(), list[AsyncTurn]()

    async def agent(turn: AsyncTurn) -> str:
        turns.append(turn)

        @turn.run.gated
        async def read_file(path: str) -> None:
            raise AssertionError("it must not run")

        if len(turns) == 1:
            await read_file(path="a")
        if end == "failed":
            raise ValueError("changed my mind")
        return "changed my mind"

    async with two_workers(late, agent):
        await late.over.wait()
        while turns[0].run.channel.unused:
            await asyncio.sleep(0.01)
    assert [one["error"] for one in late.results] == ["the tool did not run: its turn ended without it"]
    assert late.told[-1].startswith(end)


async def test_call_that_is_left_to_run_by_itself_runs_after_the_end_of_its_turn() -> None:
    late, asking, left = Slow(), Asking(), list[asyncio.Task[str]]()

    async def agent(turn: AsyncTurn) -> str:
        left.append(asyncio.create_task(asking.read(turn)))
        while not late.call:
            await asyncio.sleep(0.01)
        return "done"

    async with two_workers(late, agent):
        await late.over.wait()
        assert await left[0] == "text of a"
    assert (asking.effects, [one["outcome"] for one in late.results]) == (["a"], ["succeeded"])


async def test_refusal_to_take_the_turn_back_does_not_keep_the_call_from_being_withdrawn(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Slow()

    async def refused(body: Any) -> Response:
        return JSONResponse({"code": "invalid", "detail": "no"}, 422)

    async def slowly(*args: Any) -> ToolCall:
        await asyncio.sleep(0.2)
        return await read_call(*args)

    async with waiting(late, Asking()) as (first, _):
        await asyncio.sleep(0.1)
        late.on_yield = refused  # type: ignore[method-assign]
        monkeypatch.setattr(unstarted, "read_call", slowly)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert [one["outcome"] for one in late.results] == ["failed"]
    assert "a turn was not given back" in caplog.text


async def test_error_of_others_when_a_worker_is_stopped_is_logged_and_does_not_replace_the_stop(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*args: Any) -> ToolCall:
        raise ValueError("no token")

    def unsendable(*args: Any) -> None:
        raise ValueError("no token for this")

    async with waiting(Slow(), Asking()) as (first, _):
        await asyncio.sleep(0.1)
        monkeypatch.setattr(unstarted, "read_call", broken)
        monkeypatch.setattr("placet.attempt.asks.yield_turn", unsendable)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    assert "could not be reported (ValueError('no token')): a person settles it" in caplog.text
    assert "a turn was not given back (ValueError('no token for this'))" in caplog.text
    assert "a turn was left as it is" not in caplog.text


def kept(*names: str, **methods: Any) -> tuple[Unstarted, Any]:
    """The unstarted calls of these names, and their channel."""
    channel = SimpleNamespace(unused={}, **methods)
    found = Unstarted(channel, CLAIMED)  # type: ignore[arg-type]
    for name in names:
        found._tries.put_back(name, Attempt(f"attempt of {name}", clock.now()))
    assert found._tries.execution_id == numbering_of(CLAIMED)
    return found, channel


def consumed_call(name: str) -> ToolCall:
    raw = {"status": "consumed", "attempt_id": f"attempt of {name}", "lease_seconds": 0.1, "tool": "t"}
    return parse(ToolCall, {"execution_id": TURN["conversation_id"], "call_id": name, **raw})


async def test_call_that_is_not_answered_does_not_take_the_time_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []

    async def read(_: Any, execution_id: str, call_id: str) -> ToolCall:
        if call_id == "a":
            await asyncio.Event().wait()
        return consumed_call(call_id)

    async def no(*args: Any) -> bool:
        return False

    async def never_ran(_: Any, call: ToolCall, attempt_id: str, why: str) -> None:
        told.append(f"{call.call_id} {attempt_id}: {why}")

    monkeypatch.setattr(unstarted, "read_call", read)
    monkeypatch.setattr(unstarted, "is_idempotent", no)
    monkeypatch.setattr(unstarted, "never_ran", never_ran)
    found, _ = kept("a", "b")
    await found.withdraw("stopped", 0.2)
    assert told == ["b attempt of b: stopped"]


async def test_renewal_that_the_token_source_fails_is_told_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    renewed = asyncio.Event()
    errors: list[Exception] = [ValueError("no token"), Unavailable("unavailable", 503, "away")]

    async def ask(_: Any) -> Any:
        if errors:
            raise errors.pop(0)
        renewed.set()
        return {"lease_until": "later"}

    found, _ = kept("a", ask=ask)
    found.keep(consumed_call("a"), clock.now())
    with caplog.at_level(logging.WARNING, "placet"):
        async with asyncio.timeout(5):
            await renewed.wait()
    found.keep_no_longer()
    assert "ValueError('no token')" in caplog.text


@pytest.mark.parametrize(
    ("again", "said"), [("B", ["1 A", "1 A", "1 A", "2 C"]), ("D", ["1 A", "1 A", "1 A", "2 D", "3 C"])]
)
async def test_reply_left_by_an_earlier_run_stands_for_what_is_said_with_its_number(
    again: str, said: list[str]
) -> None:
    posted: list[str] = []
    failing = [True, True, False, False, False]

    async def ask(request: Any) -> Any:
        posted.append(f"{request.body['number']} {request.body['text']}")
        if failing.pop(0):
            raise Unavailable("unavailable", 503, "away")
        return {}

    channel: Any = SimpleNamespace(unused={}, ask=ask)
    turn = AsyncTurn(channel, "bot", CLAIMED)
    with pytest.raises(Unavailable):
        await turn.say("A")
    turn = await turn.begun_again()
    with pytest.raises(Unavailable):
        await turn.say("B")
    await turn.say(again)
    await turn.say("C")
    assert posted == said
