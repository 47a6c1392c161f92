"""Bodies of the doors are no looser than the commands that are made of them."""

import inspect
import json
import re
from typing import Any

import pytest

from gateway import bodies
from schemas import commands as k
from schemas.message import Message

COMMANDS = {command.__name__: command for command in k.COMMANDS}
BODIES = {
    name: body
    for name, body in vars(bodies).items()
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
    limits = k.limits_of(command)
    fields = body.model_json_schema()["properties"]
    compared = {
        field: (_most(text), limits[field].most)
        for field, schema in fields.items()
        if field in limits
        for text in _texts(schema)
    }

    looser = {field: both for field, both in compared.items() if both[0] > both[1]}
    assert looser == {}, json.dumps(looser)


def test_bodies_and_commands_of_a_name_are_found() -> None:
    assert len(BODIES) > 15
