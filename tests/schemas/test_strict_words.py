"""What clients write is taken for what it says: nothing that merely can be made into the right type."""

from __future__ import annotations

import inspect
import types
import typing
from typing import Any

import pytest
from pydantic import BaseModel

from gateway import bodies
from gateway.actions import calls, executions, holds, standing_rules
from schemas import policy_document, principals, standing_rule, tool_definition
from schemas.canonical import canonical
from schemas.standing_rule import RuleRefused, asked_from_text

# Their models are read from what clients send.
ROOMS = (bodies, policy_document, principals, standing_rule, tool_definition)
# What each type would take that is none, where it is not strict.
LOOSE = ((bool, 1), (bool, "true"), (bool, 1.0), (int, "1"), (int, True), (int, 1.5), (float, "1"))


@pytest.mark.parametrize("value", [1, 1.0, "true", False, 0, [], {}])
def test_any_of_a_standing_rule_is_the_word_true(value: Any) -> None:
    with pytest.raises(RuleRefused):
        asked_from_text(canonical({"arguments": {"to": {"any": value}}}))
    assert asked_from_text('{"arguments":{"to":{"any":true}}}').arguments["to"].any is True


def test_no_model_that_clients_write_makes_another_type_of_a_word() -> None:
    taken = [
        f"{model.__name__}.{name}: {value!r} as {kind.__name__}"
        for model in models()
        for name, field in model.model_fields.items()
        for kind, value in LOOSE
        if kind in (written := plain_types(field.annotation)) and type(value) not in written
        if Any not in written and takes(model, name, value)
    ]
    assert taken == [], "\n".join(taken)


def models() -> list[type[BaseModel]]:
    found = [value for room in ROOMS for value in vars(room).values() if inspect.isclass(value)]
    found += [verb.body for room in (calls, executions, holds, standing_rules) for verb in room.VERBS]
    return [each for each in dict.fromkeys(found) if issubclass(each, BaseModel) and is_written(each)]


def is_written(model: type[BaseModel]) -> bool:
    # What is made here, and read again from the log alone.
    return model.__name__ not in {"Actor", "Problem", "StandingRuleDocument", "Evidence", "Terms", "Message"}


def plain_types(annotation: Any) -> set[Any]:
    """The types of a field, without what only wraps them."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return plain_types(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return set().union(*map(plain_types, typing.get_args(annotation)))
    if origin is typing.Literal:
        return {type(value) for value in typing.get_args(annotation)}
    return {annotation}


def takes(model: type[BaseModel], name: str, value: Any) -> bool:
    """Whether a field takes a value of another type than it says; other fields may be missing."""
    alias = model.model_fields[name].alias or name
    try:
        model.model_validate({alias: value})
    except ValueError as error:
        places = [problem["loc"][:1] for problem in getattr(error, "errors", list)()]
        return bool(places) and (alias,) not in places and () not in places
    return True
