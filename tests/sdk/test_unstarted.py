"""A call that is consumed for an attempt under which nothing was run: it runs once, and needs no person."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from placet import AsyncTurn, StillHeld, attempt, turn_reports
from tests.sdk.late import Late, two_workers


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(attempt, "LOOK_AGAIN_S", 0.01)
    monkeypatch.setattr(turn_reports, "TRY_AGAIN_S", 0.01)


class Agent:
    """Says that it begins, makes the call, and returns what it returned.

    Attributes:
        effects: of the call.
        begun: how often it was called.
        goes_on: set if it makes the call at once when it is called again.
    """

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.begun = 0
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def __call__(self, turn: AsyncTurn) -> str:
        @turn.run.gated
        async def read_file(path: str) -> str:
            self.effects.append(path)
            return f"text of {path}"

        self.begun += 1
        await turn.say("one moment")
        if self.begun > 1:
            await self.goes_on.wait()
        return str(await read_file(path="a"))


async def test_turn_is_not_given_back_while_its_call_may_be_consumed_for_this_worker() -> None:
    late, agent = Late(), Agent()
    async with two_workers(late, agent):
        await late.over.wait()
    assert late.told == ["claim", "reply 1: one moment", "completed: text of a"]
    assert (agent.effects, agent.begun) == (["a"], 2)


async def test_verdict_is_waited_for_while_no_decider_has_judged_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempt, "VERDICT_S", 0.05)
    late, agent = Late(reads=30), Agent()
    async with two_workers(late, agent):
        await late.over.wait()
    assert (late.told.count("claim"), late.told[-1], agent.effects) == (1, "completed: text of a", ["a"])


async def test_turn_is_not_given_back_after_a_proposal_whose_answer_was_lost() -> None:
    # More often than the client repeats it by itself.
    late, agent = Late(unanswered=1_000), Agent()
    async with two_workers(late, agent):
        while agent.begun < 2:
            await asyncio.sleep(0.01)
        late.unanswered = 0
        await late.over.wait()
    assert late.told[-1] == "completed: text of a"
    assert (late.told.count("claim"), agent.effects) == (1, ["a"])


async def test_lease_of_the_call_is_renewed_until_the_agent_makes_it_again() -> None:
    late, agent = Late(lease_s=0.2), Agent()
    agent.goes_on.clear()
    async with two_workers(late, agent):
        while late.heartbeats < 3:
            await asyncio.sleep(0.01)
        assert agent.effects == []
        agent.goes_on.set()
        await late.over.wait()
    # A renewal can be on its way beside the last report.
    told = [one for one in late.told if one != "renew"]
    assert (told[-1], agent.effects) == ("completed: text of a", ["a"])


async def stopped_before_the_call(late: Late, agent: Agent) -> None:
    """The first worker is stopped after the verdict, before its function has made the call again."""
    agent.goes_on.clear()
    async with two_workers(late, agent) as (first, _):
        while agent.begun < 2:
            await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        agent.goes_on.set()
        if not late.idempotent:
            await late.over.wait()


async def test_worker_that_is_stopped_reports_that_the_call_did_not_run() -> None:
    late, agent = Late(), Agent()
    await stopped_before_the_call(late, agent)
    why = "the tool did not run: its worker was stopped before it began"
    assert [(one["outcome"], one["error"]) for one in late.results] == [("failed", why)]
    assert agent.effects == []
    assert "yield None" in late.told
    assert late.told[-1].startswith("failed: ToolFailed")
    assert why in late.told[-1]


async def test_call_of_an_idempotent_tool_is_left_to_the_next_worker() -> None:
    late, agent = Late(idempotent=True), Agent()
    await stopped_before_the_call(late, agent)
    assert (late.results, agent.effects) == ([], [])


async def test_call_that_began_is_not_reported_as_one_that_did_not_run() -> None:
    """Whether it had its effect is not known: a person settles it."""
    late = Late()
    began = asyncio.Event()

    async def agent(turn: AsyncTurn) -> str:
        @turn.run.gated
        async def read_file(path: str) -> Any:
            began.set()
            await asyncio.Event().wait()

        return str(await read_file(path="a"))

    async with two_workers(late, agent) as (first, _):
        await began.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    assert (late.told[:2], late.results, late.call["status"]) == (["claim", "yield None"], [], "consumed")


async def test_run_that_was_begun_again_is_the_only_one_that_speaks() -> None:
    late, refused, turns = Late(), list[str](), list[AsyncTurn]()

    async def agent(turn: AsyncTurn) -> str:
        turns.append(turn)
        await turn.say("one")

        @turn.run.gated
        async def read_file(path: str) -> str:
            return path

        if len(turns) > 1:
            try:
                await turns[0].say("two")
            except Exception as error:
                refused.append(str(error))
        try:
            await read_file(path="a")
        except StillHeld:
            await turn.say("wait")
            raise
        await turn.say("wait")
        return "done"

    async with two_workers(late, agent):
        await late.over.wait()
    assert late.told == ["claim", "reply 1: one", "reply 2: wait", "completed: done"]
    assert "was begun again" in refused[0]
