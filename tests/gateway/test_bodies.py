"""Bodies of the doors are no looser than the commands that are made of them."""

import inspect
import json
import re
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from gateway import bodies
from gateway.actions import calls, executions, holds, standing_rules, turns
from schemas import commands as k
from schemas.command_rules import rules_of
from schemas.message import Message

COMMANDS = {command.__name__: command for command in k.COMMANDS}
BODIES = {
    name: body
    for name, body in (
        *vars(bodies).items(),
        *(
            (verb.body.__name__, verb.body)
            for room in (calls, executions, holds, standing_rules)
            for verb in room.VERBS
        ),
    )
    if inspect.isclass(body) and issubclass(body, bodies.Body) and name in COMMANDS
}


def _texts(schema: Any) -> list[dict[str, Any]]:
    """The schemas of plain texts in a field's schema; others become text as canonical JSON."""
    if schema.get("type") == "string" and "enum" not in schema:
        return [schema]
    return [one for part in schema.get("anyOf", ()) for one in _texts(part)]


def _most(schema: dict[str, Any]) -> int:
    if "maxLength" in schema:
        return int(schema["maxLength"])
    found = re.search(r"(\d+)\}\$$", schema["pattern"])
    assert found is not None, schema
    return int(found[1])


@pytest.mark.parametrize(("name", "body"), BODIES.items())
def test_case_37_limit_of_a_doors_text_is_that_of_its_command(name: str, body: type[bodies.Body]) -> None:
    command: type[Message] = COMMANDS[name]
    limits = {name: rules.limit for name, rules in rules_of(command).items() if rules.limit is not None}
    fields = body.model_json_schema()["properties"]
    compared = {
        field: (_most(text), limits[field].most)
        for field, schema in fields.items()
        if field in limits
        for text in _texts(schema)
    }

    looser = {field: both for field, both in compared.items() if both[0] > both[1]}
    assert looser == {}, json.dumps(looser)


# What each door's texts and lists may not be, and the decider refuses by another rule than a form of the word: what
# a digest, a hold or a person is compared with, and what is counted where the JSON is read.
ELSEWHERE = {
    ("ConsumeGrant", "digest"),
    ("DecideHold", "digest"),
    ("DecideHold", "view_digest"),
    ("DelegateHold", "to"),
    *((verb.body.__name__, "seconds") for verb in holds.VERBS),
    ("PlantProbe", "wrong"),
    ("RequestHumanInput", "options"),
    ("RequestHumanInput", "fields"),
}
FORMS = {"pattern", "minLength", "minimum", "exclusiveMinimum", "maximum", "minItems", "maxItems"}


def _parts(schema: Any) -> list[dict[str, Any]]:
    return [schema, *(one for part in schema.get("anyOf", ()) for one in _parts(part))]


@pytest.mark.parametrize(("name", "body"), BODIES.items())
def test_case_37_form_that_a_door_wants_is_one_of_the_command_too(name: str, body: type[bodies.Body]) -> None:
    rules = rules_of(COMMANDS[name])
    formed = {
        field
        for field, schema in body.model_json_schema()["properties"].items()
        if field in COMMANDS[name].model_fields and any(FORMS & part.keys() for part in _parts(schema))
    }
    known = {field for field in formed if field in rules and (rules[field].form or rules[field].range)}

    assert {(name, field) for field in formed - known} <= ELSEWHERE


def test_bodies_and_commands_of_a_name_are_found() -> None:
    assert len(BODIES) > 15


@pytest.mark.parametrize(
    ("body", "given"),
    [
        (holds.ClaimHold, {"seconds": 407}),
        (calls.ReportResult, {"attempt_id": "a", "outcome": "succeeded", "duration_ms": 407}),
        (bodies.RetirePolicy, {"version": 407}),
        (turns.PostReply, {"attempt_id": "a", "number": 407}),
    ],
)
def test_integer_is_what_json_schema_counts_as_one(body: type[BaseModel], given: dict[str, Any]) -> None:
    (field,) = [name for name, value in given.items() if isinstance(value, int)]
    read = body.model_validate(given)
    whole = body.model_validate(given | {field: 407.0})
    assert (whole, type(getattr(whole, field))) == (read, int)
    for other in (407.5, "407", True, float("inf")):
        with pytest.raises(ValidationError):
            body.model_validate(given | {field: other})
