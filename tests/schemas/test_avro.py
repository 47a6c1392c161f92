"""The `.avsc` files are the contract: they agree with the models, and every version reads every other."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from copy import deepcopy
from enum import StrEnum
from itertools import permutations
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import avro.schema
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from pydantic.fields import FieldInfo

from schemas import codec, registry
from schemas.message import Message

PLAIN = {str: "string", int: "long", float: "double", bool: "boolean", type(None): "null"}
BY_SUBJECT = sorted(registry.builtin().by_subject.items())


def reads(reader: dict[str, Any], writer: dict[str, Any]) -> bool:
    """Whether Apache Avro says that records of one schema can be read by another."""
    checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
    found = checker.get_compatibility(
        avro.schema.parse(json.dumps(reader)), avro.schema.parse(json.dumps(writer))
    )
    return found.compatibility is SchemaCompatibilityType.compatible


def full_transitive(versions: list[dict[str, Any]]) -> bool:
    """Whether every version reads every other one, in both directions."""
    return all(reads(reader, writer) for reader, writer in permutations(versions, 2))


def avro_type(annotation: Any) -> Any:
    """The Avro type that a field's annotation stands for."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal or (isinstance(annotation, type) and issubclass(annotation, StrEnum)):
        return "string"
    if origin is Annotated:
        return avro_type(arguments[0])
    if origin in (Union, types.UnionType):
        return ["null", *(avro_type(part) for part in arguments if part is not type(None))]
    if origin is tuple:
        return {"type": "array", "items": avro_type(arguments[0])}
    if origin is dict:
        return {"type": "map", "values": avro_type(arguments[1])}
    return PLAIN[annotation]


def avro_field(name: str, field: FieldInfo) -> dict[str, Any]:
    """A model's field as Avro. What may be null defaults to null on the wire, so that it can go one day."""
    kind = avro_type(field.annotation)
    if not field.is_required():
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        return {"name": name, "type": kind, "default": default}
    return {"name": name, "type": kind, **({"default": None} if isinstance(kind, list) else {})}


def without_docs(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": schema["name"],
        "fields": [{k: v for k, v in field.items() if k != "doc"} for field in schema["fields"]],
    }


@pytest.mark.parametrize("model", codec.MODELS.values(), ids=lambda model: model.__name__)
def test_model_and_newest_schema_have_the_same_fields_types_and_defaults(model: type[Message]) -> None:
    schema = registry.builtin().latest(codec.SUBJECTS[model]).schema
    fields = [avro_field(name, field) for name, field in model.model_fields.items()]
    assert without_docs(schema) == {"name": model.__name__, "fields": fields}


@pytest.mark.parametrize("model", codec.MODELS.values(), ids=lambda model: model.__name__)
def test_schema_is_documented_in_the_models_words(model: type[Message]) -> None:
    schema = registry.builtin().latest(codec.SUBJECTS[model]).schema
    assert schema["doc"].split(".")[0].rstrip(".") in " ".join((model.__doc__ or "").split())


@pytest.mark.parametrize(("subject", "entries"), BY_SUBJECT, ids=[subject for subject, _ in BY_SUBJECT])
def test_versions_of_a_subject_read_each_other(
    subject: str, entries: tuple[registry.SchemaEntry, ...]
) -> None:
    schemas = [entry.schema for entry in entries]
    assert all(reads(schema, schema) for schema in schemas)
    assert full_transitive(schemas), f"{subject}: a new field needs a default, and so does one that goes"


HOLD = registry.builtin().by_id[39].schema


def changed(**changes: Any) -> dict[str, Any]:
    """HoldOpened with fields replaced (a schema), left out (None) or added."""
    schema = deepcopy(HOLD)
    kept = [f for f in schema["fields"] if f["name"] not in changes]
    schema["fields"] = kept + [{"name": n, **f} for n, f in changes.items() if f is not None]
    return schema


def incompatible() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "a field without default was added", changed(priority={"type": "long"})
    yield "a field without default went", changed(question=None)
    yield "a type changed", changed(question={"type": "long"})
    yield "a type got narrower", changed(deadline_at_ms={"type": "long", "default": 0})
    yield "a type got wider", changed(revision={"type": ["null", "long"], "default": None})
    yield "an int became a double, which reads one way only", changed(quorum={"type": "double"})
    yield "the name changed", {**HOLD, "name": "HoldMade"}


@pytest.mark.parametrize(("why", "schema"), list(incompatible()), ids=[why for why, _ in incompatible()])
def test_checker_catches_a_planted_incompatible_change(why: str, schema: dict[str, Any]) -> None:
    assert not full_transitive([HOLD, schema]), why


@pytest.mark.parametrize(
    "schema",
    [
        changed(priority={"type": "long", "default": 0}),
        changed(deadline_at_ms=None),
        changed(question={"type": "string", "doc": "other words"}),
    ],
    ids=["added with default", "removed with default", "documented"],
)
def test_checker_lets_a_compatible_change_pass(schema: dict[str, Any]) -> None:
    assert full_transitive([HOLD, schema])


def test_checker_compares_all_pairs_not_only_neighbours() -> None:
    first = changed(note={"type": "string", "default": ""})
    second = changed(note=None)
    third = changed(note={"type": "long", "default": 0})
    assert full_transitive([first, second])
    assert full_transitive([second, third])
    assert not full_transitive([first, second, third])
