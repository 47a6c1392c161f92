"""Whose execution it is, also where its row is not at hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gateway.operations.executions import agent_of
from gateway.operations.plan import Missing
from schemas.actor import Actor
from tests.gateway.facts import key_of, new_live


def bot(agent: str) -> Actor:
    return Actor(subject=f"bot-{agent}", tenant="acme", project="books", roles=("agent",), agent=agent)


def gate_without_rows() -> Any:
    live, _ = new_live()

    def row(subject: Any) -> Any:
        raise Missing(subject)

    return SimpleNamespace(live=live, reader=SimpleNamespace(at_hand=lambda subject: None), row=row)


def test_agent_of_who_opens_an_execution_goes_on_before_it_is_known() -> None:
    gate = gate_without_rows()
    gate.live.note_start(key_of("e1"), "billing")
    assert agent_of(gate, bot("billing"), "e1") == "billing"


def test_agent_of_another_agents_wish_to_open_it_locks_nobody_out() -> None:
    gate = gate_without_rows()
    gate.live.note_start(key_of("e1"), "shipping")
    with pytest.raises(Missing):
        agent_of(gate, bot("billing"), "e1")
