"""Whose execution it is, also where its row is not at hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gateway.operations.executions import agent_of, plan_change, plan_finish
from gateway.operations.plan import Missing
from gateway.problems import Problem
from schemas.actor import Actor
from schemas.token import Claims
from tests.gateway.facts import key_of, new_live


def bot(agent: str) -> Actor:
    return Actor(subject=f"bot-{agent}", tenant="acme", project="books", roles=("agent",), agent=agent)


def gate_without_rows() -> Any:
    live, _ = new_live()

    def row(subject: Any) -> Any:
        raise Missing(subject)

    return SimpleNamespace(live=live, reader=SimpleNamespace(at_hand=lambda subject: None), row=row)


def gate_with_row(row: dict[str, Any]) -> Any:
    return SimpleNamespace(row=lambda subject: row)


def claims_of(actor: Actor) -> Claims:
    return Claims(actor, 2_000_000_000, "t")


def test_agent_of_who_opens_an_execution_goes_on_before_it_is_known() -> None:
    gate = gate_without_rows()
    gate.live.note_start(key_of("e1"), "billing")
    assert agent_of(gate, bot("billing"), "e1") == "billing"


def test_agent_of_another_agents_wish_to_open_it_locks_nobody_out() -> None:
    gate = gate_without_rows()
    gate.live.note_start(key_of("e1"), "shipping")
    with pytest.raises(Missing):
        agent_of(gate, bot("billing"), "e1")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"outcome": "completed", "result": 1, "reason": "because"}, "`result`"),
        ({"outcome": "failed", "reason": "no money", "result": {"paid": 2}}, "`reason`"),
        ({"outcome": "cancelled", "result": False}, "`reason`"),
    ],
)
def test_finish_with_what_another_outcome_has_is_refused_before_it_would_be_lost(
    body: dict[str, Any], told: str
) -> None:
    with pytest.raises(Problem, match="execution that") as caught:
        plan_finish(gate_without_rows(), claims_of(bot("billing")), "e1", lambda: body, "ref")
    assert (caught.value.status, caught.value.code) == (422, "invalid")
    assert told in caught.value.detail


@pytest.mark.parametrize(
    "body", [{"outcome": "failed", "result": None}, {"outcome": "completed", "reason": ""}]
)
def test_finish_with_an_empty_word_of_another_outcome_is_taken(body: dict[str, Any]) -> None:
    with pytest.raises(Missing):
        plan_finish(gate_without_rows(), claims_of(bot("billing")), "e1", lambda: body, "ref")


def test_fail_with_two_different_errors_is_refused() -> None:
    gate = gate_with_row({"agent": "billing"})
    body = {"error": "no money", "reason": "no account"}
    with pytest.raises(Problem, match="leave one of them out"):
        plan_change(gate, claims_of(bot("billing")), "e1", "fail", lambda: body, "key")
