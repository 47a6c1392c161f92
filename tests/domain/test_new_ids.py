"""Ids that a decision makes are of one command only: services choose command ids, and use the same on many keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemas import commands as k
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from tests.domain.world import PROJECT, RITA, RULES, TENANT, TOOLS, World, published, the

# As docs/log-contract.md names them in its worked sequence.
REMEMBERED = {"reads": "once", "pays": "once", "pays and remembers": "execution", "makes a rule": "rule"}
PLACES = [(TENANT, PROJECT, "x"), (TENANT, PROJECT, "y"), (TENANT, "other", "x"), ("other", PROJECT, "x")]


def ids(place: tuple[str, str, str], story: str) -> dict[str, str]:
    """The ids that a call and its approval get where every command has the same id, whoever asks where."""
    tenant, project, execution_id = place
    world = World(tenant=tenant, project=project)
    tools: list[dict[str, Any]] = [{"name": "pay", "annotations": {"destructiveHint": False}}, TOOLS[0]]
    remember = {"scopes": ["execution", "rule"]}
    rules = [
        {**one, "hold": {**one["hold"], "remember": remember}} if one["id"] == "payments" else one
        for one in RULES
    ]
    world.definitions = published(Definitions(policies=PolicySet()), rules, tools, tenant)
    world.ask(k.StartExecution(agent="bot"), command_id="start", execution_id=execution_id)
    tool = "read" if story == "reads" else "pay"
    proposal = k.ProposeToolCall(call_id="c", tool=tool, arguments='{"amount":5}')
    events = world.ask(proposal, command_id="propose", execution_id=execution_id)
    if story != "reads":
        hold = the(events, "HoldOpened")
        scope: Any = REMEMBERED[story]
        approval = k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest, scope=scope)
        events = world.ask(approval, RITA, command_id="approve", execution_id=execution_id)
    released = the(events, "ToolCallReleased")
    found = {"decision": released.decision_id, "grant": released.grant_id}
    if story == "makes a rule":
        found["rule"] = the(events, "RuleAsked").rule_id
    if story == "pays and remembers":
        found["rule"] = json.loads(the(events, "DecisionRecorded").remember)["rule_id"]
    return found


@pytest.mark.parametrize("story", [*REMEMBERED])
def test_same_command_id_on_another_key_makes_other_ids_of_decision_grant_and_rule(story: str) -> None:
    found = [ids(place, story) for place in PLACES]
    for kind in found[0]:
        assert len({one[kind] for one in found}) == len(PLACES), kind
    assert ids(PLACES[0], story) == found[0], "they follow from the command"
