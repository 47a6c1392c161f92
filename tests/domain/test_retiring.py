"""Retiring a policy: an event like publishing, by who may publish, and nothing of it is in force afterwards."""

import json
from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.events.definitions import PolicyRetired
from schemas.ids import TENANT_WIDE, definition_key
from schemas.message import Message
from services.domain import publishing as definitions_room
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet, judge
from services.domain.publishing import decide, evolve, set_aside
from tests.domain.policy.builders import call
from tests.domain.steps import code, proposed, started
from tests.domain.world import OLGA, PROJECT, RITA, TENANT, the

KEY = definition_key(TENANT, "policy", "p", PROJECT)
WIDE_KEY = definition_key(TENANT, "policy", "p")
WIDE_OLGA = OLGA.model_copy(update={"project": TENANT_WIDE})


def publish(definitions: Definitions, then: str = "allow", key: bytes = KEY, actor: Actor = OLGA) -> Any:
    document = json.dumps({"policy": "p", "rules": [{"id": "a", "then": then}]})
    return the(
        decide(definitions, key, k.PublishPolicy(name="p", document=document), actor), "PolicyPublished"
    )


def with_policies(*thens: str) -> Definitions:
    definitions = Definitions(policies=PolicySet())
    for offset, then in enumerate(thens):
        definitions = evolve(definitions, publish(definitions, then), TENANT, offset)
    return definitions


def retire(
    definitions: Definitions, version: int = 0, actor: Actor = OLGA, key: bytes = KEY, reason: str = ""
) -> list[Message]:
    return decide(definitions, key, k.RetirePolicy(name="p", version=version, reason=reason), actor)


def effect(definitions: Definitions) -> tuple[str, str]:
    verdict = judge(definitions.policies, call("x", tenant=TENANT, project=PROJECT), 0)
    return verdict.effect, verdict.reason


def test_retired_policy_judges_no_call_any_more() -> None:
    definitions = with_policies("deny", "allow")
    (event,) = retire(definitions, 2, reason="replaced")
    assert event == PolicyRetired(name="p", version=2, reason="replaced", by="olga", project=PROJECT)
    after = evolve(definitions, event, TENANT, 7)

    assert (effect(definitions), effect(after)) == (("allow", "matched"), ("hold", "no_policy"))
    assert after.since(6) == {KEY.decode(): 2}


def test_retired_policy_is_published_again_as_its_next_version_even_with_the_same_text() -> None:
    definitions = with_policies("allow")
    after = evolve(definitions, the(retire(definitions), "PolicyRetired"), TENANT, 1)

    assert code(retire(after)) == "duplicate"
    event = publish(after, "allow")
    assert event.version == 2
    assert effect(evolve(after, event, TENANT, 2)) == ("allow", "matched")


def test_retire_of_another_version_than_the_one_in_force_is_refused() -> None:
    refused = retire(with_policies("allow", "deny"), 1)

    assert code(refused) == "invalid"
    assert "2 is in force, not 1" in the(refused, "CommandRefused").detail


def test_retire_of_what_nobody_published_is_not_found() -> None:
    assert code(retire(Definitions(policies=PolicySet()))) == "not_found"


def test_case_35_retire_is_authorised_as_publishing_is() -> None:
    wide = Definitions(policies=PolicySet())
    wide = evolve(wide, publish(wide, key=WIDE_KEY, actor=WIDE_OLGA), TENANT, 0)
    agent = OLGA.model_copy(update={"agent": "bot"})
    elsewhere = OLGA.model_copy(update={"project": "p2"})

    assert code(retire(wide, actor=OLGA, key=WIDE_KEY)) == "not_authorised"
    assert [code(retire(with_policies("allow"), actor=actor)) for actor in (RITA, agent, elsewhere)] == [
        "not_authorised"
    ] * 3
    assert the(retire(wide, actor=WIDE_OLGA, key=WIDE_KEY), "PolicyRetired").project == TENANT_WIDE


def test_retire_frees_a_tenant_of_a_policy_that_nobody_can_read() -> None:
    definitions = with_policies("allow")
    event = publish(definitions, "deny").model_copy(update={"document": '{"policy":"p","rulez":[]}'})
    unread = set_aside(definitions, event, TENANT, 1, ValueError("of a later version"))
    assert effect(unread) == ("hold", "policy_error")

    after = evolve(unread, the(retire(unread, 2), "PolicyRetired"), TENANT, 2)

    assert effect(after) == ("hold", "no_policy")


def test_release_of_a_policy_that_was_retired_is_taken_back_before_it_runs() -> None:
    world = started()
    digest = the(proposed(world, "read"), "ToolCallReleased").digest
    event = PolicyRetired(name="p", version=1, reason="", by="olga")
    world.definitions = evolve(world.definitions, event, TENANT, world.definitions.through_offset + 1)

    said = world.ask(k.ConsumeGrant(call_id="c", digest=digest, attempt_id="a"))

    assert the(said, "HoldOpened").cause == "definition_changed"


def test_publish_of_one_policy_too_many_says_to_retire_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions_room, "POLICIES_MAX", 1)
    first = with_policies("allow")
    more = k.PublishPolicy(name="q", document=json.dumps({"policy": "q", "rules": []}))
    key = definition_key(TENANT, "policy", "q")

    refused = the(decide(first, key, more, WIDE_OLGA), "CommandRefused")

    assert (refused.code, refused.detail) == ("quota", "1 policies of this tenant are in force: retire some")
    assert publish(first, "deny").version == 2, "the next version of one that is in force is taken"
    retired = evolve(first, the(retire(first), "PolicyRetired"), TENANT, 1)
    assert the(decide(retired, key, more, WIDE_OLGA), "PolicyPublished").version == 1
    others = WIDE_OLGA.model_copy(update={"tenant": "globex"})
    assert the(decide(first, key, more, others), "PolicyPublished").version == 1
