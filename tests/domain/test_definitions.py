"""Publishing: versions, repeats, refusals. (What a schema makes of arguments: `test_input_schema.py`.)"""

import json
from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import canonical, parse_strict, tool_version_of
from schemas.events.definitions import ToolPublished
from schemas.ids import definition_key
from schemas.message import Message
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.domain.publishing import decide, evolve
from tests.domain.steps import code
from tests.domain.world import OLGA, PROJECT, RITA, TENANT, the

KEY = definition_key(TENANT, "tool", "t", PROJECT)
EMPTY = Definitions(policies=PolicySet())


def publish(definitions: Definitions, definition: Any, actor: Actor = OLGA) -> list[Message]:
    return decide(definitions, KEY, k.PublishTool(name="t", definition=json.dumps(definition)), actor)


def test_publish_counts_versions_and_knows_a_repeat() -> None:
    first = publish(EMPTY, {"name": "t"})
    definitions = evolve(EMPTY, the(first, "ToolPublished"), TENANT, 7)

    assert code(publish(definitions, {"name": "t"})) == "duplicate"
    assert the(publish(definitions, {"name": "t", "idempotent": True}), "ToolPublished").version == 2
    assert definitions.since(6) == {KEY.decode(): 1}
    assert definitions.since(7) == {}


def test_publish_by_a_reviewer_is_not_authorised_before_anything_is_read() -> None:
    assert code(publish(EMPTY, {"nome": 5}, RITA)) == "not_authorised"


@pytest.mark.parametrize(
    "definition",
    [
        [],
        {"name": "other"},
        {"name": "t", "idempotend": True},
        {"name": "t", "annotations": {"readOnlyHint": "yes"}},
        {"name": "t", "run_timeout_seconds": 0},
        {"name": "t", "inputSchema": {"type": "objekt"}},
        {"name": "t", "inputSchema": {"properties": {"a": {"pattern": "["}}}},
        {"name": "t", "inputSchema": {"$schema": []}},
        {"name": "t", "inputSchema": {"$schema": 5}},
    ],
)
def test_publish_what_cannot_be_meant_is_invalid(definition: Any) -> None:
    assert code(publish(EMPTY, definition)) == "invalid"


def test_publish_keeps_what_is_decided_by_and_nothing_that_is_null() -> None:
    given: Any = {
        "name": "t",
        "title": None,
        "icons": [],
        "_meta": {"a": 1},
        "annotations": {"readOnlyHint": None},
    }

    assert the(publish(EMPTY, given), "ToolPublished").definition == '{"annotations":{},"name":"t"}'


def test_definition_that_was_published_with_its_nulls_keeps_its_version_and_is_no_other_one() -> None:
    text = canonical({"name": "t", "title": None, "description": "x" * 20_000, "outputSchema": []})
    version = tool_version_of(parse_strict(text))
    event = ToolPublished(
        name="t", version=1, tool_version=version, definition=text, by="olga", project=PROJECT
    )
    definitions = evolve(EMPTY, event, TENANT, 0)

    tool = definitions.tool(TENANT, "t", PROJECT)
    assert tool is not None
    assert (tool.version, tool.unreadable) == (version, "")
    event = event.model_copy(update={"definition": canonical({"name": "t", "title": None})})
    definitions = evolve(EMPTY, event, TENANT, 0)
    assert code(publish(definitions, {"name": "t", "title": None})) == "duplicate"
    assert code(publish(definitions, {"name": "t"})) == "duplicate"
    assert the(publish(definitions, {"name": "t", "title": "T"}), "ToolPublished").version == 2


def test_published_tool_of_one_tenant_is_unknown_to_another() -> None:
    event = ToolPublished(name="t", version=1, tool_version="-", definition='{"name":"t"}', by="olga")
    definitions = evolve(EMPTY, event, TENANT, 0)

    assert definitions.tool(TENANT, "t", PROJECT) is not None
    assert definitions.tool("other", "t", PROJECT) is None


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({"name": "t", "annotations": {"readonlyHint": True}}, "did you mean 'readOnlyHint'?"),
        (
            {"name": "t", "annotations": {"readOnlyHint": "yes"}},
            "annotations.readOnlyHint: true or false is needed",
        ),
        ({"name": "t", "idempotend": True}, "did you mean 'idempotent'?"),
        ({"foo": 1, "lease_seconds": 1, "idempotent": "yes"}, "foo: unknown field"),
        ({"foo": 1, "lease_seconds": 1, "idempotent": "yes"}, "idempotent: true or false"),
        ({"foo": 1, "lease_seconds": 1, "idempotent": "yes"}, "lease_seconds: a number of at least 5"),
    ],
)
def test_publish_of_a_misspelt_tool_names_the_right_spelling(definition: Any, said: str) -> None:
    assert said in the(publish(EMPTY, definition), "CommandRefused").detail


def test_publish_of_a_policy_that_does_not_compile_names_every_fault() -> None:
    rules = [{"id": f"r{n}", "then": "allow", "when": "args.x >"} for n in range(3)]
    command = k.PublishPolicy(name="p", document=json.dumps({"policy": "p", "rules": rules}))
    detail = the(
        decide(EMPTY, definition_key(TENANT, "policy", "p", PROJECT), command, OLGA), "CommandRefused"
    ).detail

    assert [f"rules[{n}].when: it ends" in detail for n in range(3)] == [True] * 3


def test_case_31_publish_of_a_policy_whose_patterns_are_too_large_together_says_what_to_shorten() -> None:
    rules = [
        {"id": f"r{n}", "then": "hold", "when": f"args.a.matches('{n:03d}.{{600}}')"} for n in range(400)
    ]
    document = json.dumps({"policy": "p", "rules": rules})

    refused = the(
        decide(
            EMPTY,
            definition_key(TENANT, "policy", "p", PROJECT),
            k.PublishPolicy(name="p", document=document),
            OLGA,
        ),
        "CommandRefused",
    )

    assert refused.code == "invalid"
    assert "rules[0].when" in refused.detail
    assert "shorten this one first" in refused.detail
