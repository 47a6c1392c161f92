"""A published definition that this version cannot read: what depends on it is held, everything else goes on."""

import json
from typing import Any

import pytest

from schemas.events.definitions import PolicyPublished, ToolPublished
from schemas.limits import ADOPTED_NAMED_MAX
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.domain.publishing import evolve, set_aside
from tests.domain.steps import code, consumed, decided, held, proposed, released, started
from tests.domain.world import RULES, TENANT, TOOLS, names, published, the

WHY = ValueError("no such word")


def with_unreadable(definitions: Definitions, event: Any, tenant: str = TENANT) -> Definitions:
    return set_aside(definitions, event, tenant, definitions.through_offset + 1, WHY)


def tool_event(name: str = "read") -> ToolPublished:
    return ToolPublished(name=name, version=2, tool_version="f" * 64, definition='{"future":1}', by="olga")


def policy_event(name: str = "p") -> PolicyPublished:
    return PolicyPublished(name=name, version=99, document='{"future":1}', by="olga")


def test_tool_that_cannot_be_read_holds_its_calls_though_a_rule_allows_them_and_says_why() -> None:
    world = started()
    world.definitions = with_unreadable(world.definitions, tool_event())

    said = proposed(world, "read")

    verdict = the(said, "PolicyVerdictIssued")
    assert names(said)[-1] == "HoldOpened"
    assert verdict.detail == "the tool's definition cannot be read: ValueError: no such word"
    assert the(said, "ToolCallProposed").tool_version == "f" * 64
    assert names(proposed(world, "again", "d"))[-1] == "HoldOpened"
    assert names(decided(world, the(said, "HoldOpened"), "approve"))[-1] == "ToolCallReleased", "people may"


def test_tool_that_cannot_be_read_takes_back_what_its_earlier_version_released() -> None:
    world = started()
    digest = the(proposed(world, "read"), "ToolCallReleased").digest
    world.definitions = with_unreadable(world.definitions, tool_event())

    said = consumed(world, digest)

    assert the(said, "HoldOpened").cause == "definition_changed"
    assert code(said) == "not_released"


def test_tool_that_cannot_be_read_is_not_run_twice_though_it_was_idempotent() -> None:
    world = started()
    digest = released(world, "again")
    consumed(world, digest, "a")
    world.definitions = with_unreadable(world.definitions, tool_event("again"))

    assert code(consumed(world, digest, "b")) == "already_consumed"


def test_tool_that_cannot_be_read_leaves_other_tools_and_tenants_alone() -> None:
    world = started()
    world.definitions = with_unreadable(world.definitions, tool_event("pay"))
    world.definitions = with_unreadable(world.definitions, tool_event("read"), "other")

    assert names(proposed(world, "read"))[-1] == "ToolCallReleased"


@pytest.mark.parametrize("name", ["p", "another"])
def test_policy_that_cannot_be_read_holds_every_call_of_its_tenant(name: str) -> None:
    """Nobody can say whom it was for: it may be the stricter one for any of them."""
    world = started()
    world.definitions = with_unreadable(world.definitions, policy_event(name))

    said = proposed(world, "read")

    verdict = the(said, "PolicyVerdictIssued")
    assert (verdict.effect, verdict.reason, verdict.policy_version) == ("hold", "policy_error", f"{name}@99")
    assert "no such word" in verdict.detail
    assert names(proposed(world, "drop", "d"))[-1] == "ToolCallDenied", "what can be read may be stricter"
    assert held(world, "transfer", "t").roles == ("cfo",)


def test_policy_that_cannot_be_read_is_another_tenants_affair() -> None:
    world = started()
    world.definitions = with_unreadable(world.definitions, policy_event(), "other")

    assert names(proposed(world, "read"))[-1] == "ToolCallReleased"


def test_policy_that_cannot_be_read_takes_back_what_an_earlier_one_released() -> None:
    world = started()
    digest = the(proposed(world, "read"), "ToolCallReleased").digest
    world.definitions = with_unreadable(world.definitions, policy_event())

    assert the(consumed(world, digest), "HoldOpened").cause == "definition_changed"


def test_next_version_that_can_be_read_puts_things_right() -> None:
    world = started()
    world.definitions = with_unreadable(world.definitions, tool_event())
    world.definitions = with_unreadable(world.definitions, policy_event())
    assert names(proposed(world, "read", "a"))[-1] == "HoldOpened"

    through = world.definitions.through_offset
    world.definitions = published(world.definitions, tools=TOOLS[:1])
    later = PolicyPublished(
        name="p", version=100, document=json.dumps({"policy": "p", "rules": RULES}), by="olga"
    )
    world.definitions = _evolved(world.definitions, later)

    assert names(proposed(world, "read", "b"))[-1] == "ToolCallReleased"
    assert world.definitions.since(through) == {"acme/tool/read": through + 2, "acme/policy/p": 100}


def _evolved(definitions: Definitions, event: Any) -> Definitions:
    return evolve(definitions, event, TENANT, definitions.through_offset + 1)


def test_set_aside_counts_as_published_so_that_it_is_adopted_and_its_version_is_not_given_again() -> None:
    definitions = with_unreadable(Definitions(policies=PolicySet()), policy_event())

    assert definitions.through_offset == 0
    assert definitions.since(-1) == {"acme/policy/p": 99}


def test_adoption_of_more_than_it_names_names_the_newest() -> None:
    """What is adopted is said by its offset; a batch must hold the names of however many tenants."""
    definitions = Definitions(policies=PolicySet())
    for number in range(ADOPTED_NAMED_MAX + 5):
        event = ToolPublished(
            name=f"t{number}",
            version=1,
            tool_version="-",
            definition=json.dumps({"name": f"t{number}"}),
            by="o",
        )
        definitions = _evolved(definitions, event)

    named = definitions.since(-1)
    assert len(named) == ADOPTED_NAMED_MAX
    assert "acme/tool/t5" in named
    assert "acme/tool/t4" not in named
    assert list(named) == sorted(named)
    assert definitions.since(definitions.through_offset - 1) == {f"acme/tool/t{ADOPTED_NAMED_MAX + 4}": 1}
