"""A standing rule whose id a decision gave out, and that is on its way into the log of definitions."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.live.live import Live
from gateway.operations import standing_rules
from gateway.problems import Problem
from schemas.actor import Actor
from schemas.events.rules import RuleAsked, RuleMade
from schemas.ids import definition_key
from schemas.refusals import Refusal
from tests.gateway.facts import Partition, key_of, new_live
from tests.projections.test_batching import rule_document

RITA = Actor(subject="rita", tenant="acme", project="books", roles=("reviewer",))
DOCUMENT = rule_document("r", project="books")
ASKED = RuleAsked(rule_id="r", decision_id="d1", document=DOCUMENT, by="rita")
MADE = RuleMade(rule_id="r", status="active", reason="", document=DOCUMENT, by="rita")


def at_a_gate() -> tuple[Live, Any]:
    """A live state, and the gate of a gateway that has read everything."""
    live, _ = new_live()

    async def all_caught_up() -> None:
        await asyncio.sleep(0)

    return live, SimpleNamespace(live=live, reader=SimpleNamespace(all_caught_up=all_caught_up))


async def test_word_on_a_rule_waits_until_it_is_made() -> None:
    live, gate = at_a_gate()
    Partition(live).write(key_of("e1"), "c1", ASKED)

    asking = asyncio.create_task(standing_rules.rule_row(gate, RITA, "r"))
    for _ in range(5):
        await asyncio.sleep(0)
    Partition(live, partition=-1).write(definition_key("acme", "rule", "r"), "c2", MADE)

    assert (await asking)["rule_id"] == "r"
    assert not live.definitions.asked


async def test_rule_that_is_not_made_yet_is_no_rule_that_there_never_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    live, gate = at_a_gate()
    Partition(live).write(key_of("e1"), "c1", ASKED)
    monkeypatch.setattr(standing_rules, "MADE_WAIT_S", 0.01)

    assert await refusal(gate, RITA, "r") == Refusal.UNAVAILABLE
    assert await refusal(gate, RITA, "another") == Refusal.NOT_FOUND
    assert await refusal(gate, RITA.model_copy(update={"project": "other"}), "r") == Refusal.NOT_FOUND


async def test_rule_that_was_made_before_its_asking_is_read_is_not_waited_for() -> None:
    live, gate = at_a_gate()
    Partition(live, partition=-1).write(definition_key("acme", "rule", "r"), "c2", MADE)
    Partition(live).write(key_of("e1"), "c1", ASKED)

    assert not live.definitions.asked
    assert (await standing_rules.rule_row(gate, RITA, "r"))["status"] == "active"


async def refusal(gate: Any, actor: Actor, rule_id: str) -> Refusal:
    with pytest.raises(Problem) as refused:
        await standing_rules.rule_row(gate, actor, rule_id)
    return refused.value.code
