"""The steps from a request to its answer: the same for who may wait and for who may not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.live.outcome import Outcome, Refused
from gateway.live.reader import Subject
from gateway.operations.plan import (
    Missing,
    Plan,
    Reply,
    Unprepared,
    ask_again,
    at_once,
    begun,
    never,
    perform,
    row_of,
)
from gateway.problems import Problem
from schemas.refusals import Refusal

SUBJECT = Subject("hold", "acme", "main", "", "h")
ANSWER = Reply(200, b"{}")
ASK: Any = "ask"


def gate(outcome: Outcome | None, row: dict[str, Any] | None = None) -> Any:
    rows: list[Any] = [row]

    def send(ask: Any, timeout_s: float) -> asyncio.Future[Outcome | None]:
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(outcome)
        return answer

    async def fetch(subject: Subject) -> Any:
        rows[0] = {"fetched": True}
        return rows[0]

    reader = SimpleNamespace(at_hand=lambda subject: rows[0], fetch=fetch)
    return SimpleNamespace(asker=SimpleNamespace(send=send), reader=reader)


def accepted() -> Any:
    return SimpleNamespace(refused=None)


def refused(detail: str) -> Any:
    return SimpleNamespace(refused=Refused(Refusal.INVALID, detail))


async def test_missing_row_is_fetched_and_the_request_planned_again() -> None:
    at = gate(accepted(), None)

    def make() -> Plan:
        if at.reader.at_hand(SUBJECT) is None:
            raise Missing(SUBJECT)
        return Plan(ASK, SUBJECT, lambda row, outcome: Reply(200, repr(row).encode()))

    assert (await perform(at, make)).body == b"{'fetched': True}"


async def test_begun_is_the_plan_itself_where_nothing_is_to_be_waited_for() -> None:
    plan = Plan(ASK, None, lambda row, outcome: ANSWER)
    assert begun(gate(None), lambda: plan) is plan


async def test_begun_gives_what_prepares_the_plan_and_has_not_begun_it() -> None:
    plan = Plan(ASK, None, lambda row, outcome: ANSWER)
    prepared = []

    async def prepare() -> Plan:
        prepared.append(plan)
        return plan

    def make() -> Plan:
        raise Unprepared(prepare)

    later = begun(gate(None), make)
    assert not isinstance(later, Plan)
    assert prepared == []
    assert await later() is plan


async def test_silence_is_told_as_the_plan_says() -> None:
    plan = Plan(ASK, None, never, ask_again("publish again"))
    with pytest.raises(Problem) as silent:
        await perform(gate(None), lambda: plan)
    assert (silent.value.code, silent.value.detail) == (Refusal.UNAVAILABLE, "publish again")


async def test_refusal_is_told_as_the_plan_says_and_delivers_nothing() -> None:
    async def deliver(row: Any, outcome: Outcome) -> Reply:
        raise AssertionError("a refused command has nothing to deliver")

    plan = Plan(
        ASK,
        None,
        never,
        refused=lambda problem: Problem(problem.code, f"told: {problem.detail}"),
        deliver=deliver,
    )
    with pytest.raises(Problem) as told:
        await perform(gate(refused("wrong")), lambda: plan)
    assert told.value.detail == "told: wrong"


async def test_accepted_command_that_delivers_takes_its_time_and_another_does_not() -> None:
    async def deliver(row: Any, outcome: Outcome) -> Reply:
        return ANSWER

    def early(row: Any) -> bool:
        return bool(row["status"] == "proposed")

    def render(row: Any, outcome: Outcome) -> Reply:
        return ANSWER

    at = gate(accepted(), {"status": "proposed"})

    def answered(at: Any, plan: Plan) -> Reply | None:
        return at_once(plan, accepted(), row_of(at, plan))

    assert answered(at, Plan(ASK, None, never, deliver=deliver)) is None
    assert answered(at, Plan(ASK, SUBJECT, never, deliver=deliver, delivers=early)) is None
    assert answered(at, Plan(ASK, SUBJECT, render, is_early=early)) is None
    assert answered(gate(accepted()), Plan(ASK, SUBJECT, render)) is None
    assert answered(at, Plan(ASK, SUBJECT, render)) == ANSWER
    assert (
        answered(at, Plan(ASK, SUBJECT, render, deliver=deliver, delivers=lambda row: not early(row)))
        == ANSWER
    )
