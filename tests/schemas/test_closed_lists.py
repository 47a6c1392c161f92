"""A field with a closed list of values names them: in its schema's `doc`, or, if added later, in the log contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from schemas.commands import COMMANDS
from schemas.events import EVENTS
from schemas.message import Message

ROOT = Path(__file__).resolve().parents[2]
AVRO = ROOT / "schemas" / "avro"
CONTRACT = (ROOT / "docs" / "log-contract.md").read_text()


def _of(annotation: Any) -> tuple[str, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


FIELDS = [
    (model, name, set(values))
    for model in (*COMMANDS, *EVENTS)
    for name, field in model.model_fields.items()
    if (values := [value for one in [field.annotation, *get_args(field.annotation)] for value in _of(one)])
]


def doc_of(model: type[Message], name: str) -> str:
    """What the newest schema of a message says of a field."""
    (newest, *_) = sorted(
        AVRO.glob(f"*/{model.__name__}.*.avsc"), key=lambda path: int(path.name.split(".")[1]), reverse=True
    )
    fields = {field["name"]: field for field in json.loads(newest.read_text())["fields"]}
    return str(fields[name].get("doc", ""))


@pytest.mark.parametrize(
    ("model", "name", "values"), FIELDS, ids=[f"{model.__name__}.{name}" for model, name, _ in FIELDS]
)
def test_every_value_of_a_closed_list_is_documented(
    model: type[Message], name: str, values: set[str]
) -> None:
    listed = {value.split(";")[0].strip() for value in doc_of(model, name).split("|")}
    assert listed - {""} <= values, "a value that the field cannot have"
    for value in values - listed - {""}:
        assert f"`{value}` of\n`{model.__name__}.{name}`" in CONTRACT.replace(" of `", " of\n`"), value


def test_closed_lists_were_found() -> None:
    assert len(FIELDS) > 15
