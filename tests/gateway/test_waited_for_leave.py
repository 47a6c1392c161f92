"""A proposal that names its attempt and is waited for: no answer out of memory is the leave to run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import gateway.operations.calls as operations
from gateway.live.outcome import Outcome, Refused
from gateway.operations.plan import Gate, perform
from gateway.problems import Problem
from gateway.rest import calls as routes
from gateway.rest.request_context import answer
from gateway.shares.open_limit import OpenLimit
from schemas.refusals import Refusal
from tests.gateway.facts import gate_of

NOW_MS = 10_000_000
REPEATED = Outcome("digest", b"key", Refused(Refusal.DUPLICATE, "already proposed"))
TAKEN = Outcome("digest", b"key", Refused(Refusal.ALREADY_CONSUMED, "another attempt runs this call"))


def call(status: str, attempt_id: str | None = None, lease_until_ms: int = 0) -> dict[str, Any]:
    return {
        "status": status,
        "attempt_id": attempt_id,
        "lease_until_ms": lease_until_ms,
        "run_deadline_at_ms": None,
        "agent": "billing",
        "arguments": "{}",
    }


MINE, ENDED = call("consumed", "A", NOW_MS + 1_000), call("consumed", "A", NOW_MS - 60_000)


class Watch:
    """Wakes whoever waits once something has changed."""

    is_closed = False

    def __init__(self, change: Callable[[], None]) -> None:
        self._change = change

    async def until(self, subject: object, done: Callable[[], bool], timeout_s: float) -> bool:
        self._change()
        if not done():
            await asyncio.sleep(timeout_s)
        return done()


BOT: Any = SimpleNamespace(subject="bot", tenant="acme", project="main", agent="billing", roles=())


def gate_over(rows: dict[str, Any], outcomes: list[Outcome | None], change: Callable[[], None]) -> Any:
    """What an operation asks: these rows, which `change` alters while somebody waits, and these answers."""

    async def decided(ask: object, timeout_s: float) -> Outcome | None:
        return outcomes.pop(0)

    async def fetch(subject: Any) -> Any:
        return rows[subject.kind]

    gate = gate_of(
        reader=SimpleNamespace(at_hand=lambda subject: rows[subject.kind], fetch=fetch),
        live=SimpleNamespace(
            watch=Watch(change),
            time=SimpleNamespace(now_ms=lambda: NOW_MS),
            position=SimpleNamespace(cursor=lambda: "cursor"),
        ),
        policy=SimpleNamespace(check=lambda tool: None, claims=lambda tool, said: {}),
        quotas=SimpleNamespace(take=lambda *who: None),
        grants=SimpleNamespace(call_json=lambda found, actor: dict(found)),
        topics=SimpleNamespace(commands="commands"),
        partitions=1,
        asker=SimpleNamespace(send=decided),
    )
    gate.execution_ask = lambda *parts, **more: Gate.execution_ask(gate, *parts, **more)
    gate.json = lambda *parts: Gate.json(gate, *parts)
    gate.row = lambda subject: Gate.row(gate, subject)
    return gate


def door_at(gate: Any, attempt_id: str) -> Any:
    """A request to propose `read` for this attempt, which waits 0.2 s."""

    async def given() -> Callable[[], dict[str, Any]]:
        return lambda: {"call_id": "c", "tool": "read", "arguments": {}, "attempt_id": attempt_id}

    async def performed(make: Any) -> Any:
        return answer(await perform(gate, make))

    async def priced(doing: Any) -> Any:
        return await doing

    return SimpleNamespace(
        given=given,
        seconds=lambda parameter: 0.2,
        gate=gate,
        claims=SimpleNamespace(actor=BOT),
        actor=BOT,
        key=None,
        priced=priced,
        perform=performed,
        authentication=SimpleNamespace(recheck_s=30, check=lambda: asyncio.sleep(0)),
        gateway=SimpleNamespace(waiting_limit=OpenLimit(1, "too many")),
        request=SimpleNamespace(receive=asyncio.Event().wait),
    )


async def proposed(
    monkeypatch: pytest.MonkeyPatch,
    row: dict[str, Any],
    attempt_id: str,
    outcomes: list[Outcome | None],
    later: dict[str, Any] | None = None,
) -> tuple[int, str]:
    """The real route, with what the decider says; its status and `status`, or its problem's code."""
    rows = {"call": row, "execution": {"agent": "billing", "lifecycle": "running"}}
    gate = gate_over(rows, outcomes, lambda: rows.update(call=later or row))
    monkeypatch.setattr(operations, "arguments_to_seal", lambda *what: None)
    monkeypatch.setattr(operations, "check_acts", lambda *what: None)
    try:
        response = await routes.propose(door_at(gate, attempt_id), "e")
    except Problem as problem:
        return 0, str(problem.code)
    return response.status_code, json.loads(bytes(response.body))["status"]


@pytest.mark.parametrize(("row", "attempt_id"), [(MINE, "A"), (ENDED, "A"), (MINE, "B")])
async def test_while_nobody_decides_it_cannot_be_told_who_has_the_call(
    monkeypatch: pytest.MonkeyPatch, row: dict[str, Any], attempt_id: str
) -> None:
    assert await proposed(monkeypatch, row, attempt_id, [None]) == (0, "unavailable")


async def test_leave_is_given_where_the_decider_says_so_and_the_lease_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await proposed(monkeypatch, MINE, "A", [REPEATED]) == (200, "consumed")
    assert await proposed(monkeypatch, ENDED, "A", [REPEATED]) == (0, "not_released")


async def test_call_that_another_attempt_consumed_while_it_was_waited_for_is_asked_about_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = call("held")
    assert await proposed(monkeypatch, held, "B", [REPEATED, TAKEN], MINE) == (0, "already_consumed")
    assert await proposed(monkeypatch, held, "B", [REPEATED, None], MINE) == (0, "unavailable")


async def test_call_that_was_released_while_it_was_waited_for_is_told_as_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await proposed(monkeypatch, call("held"), "B", [REPEATED], call("released")) == (200, "released")


@pytest.mark.parametrize(("status", "said"), [("held", 202), ("denied", 200), ("succeeded", 200)])
async def test_what_is_known_is_told_while_nobody_decides(
    monkeypatch: pytest.MonkeyPatch, status: str, said: int
) -> None:
    assert await proposed(monkeypatch, call(status), "B", [None]) == (said, status)
