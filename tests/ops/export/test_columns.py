"""The columns of an export, against the events that they are read from."""

from __future__ import annotations

import types
import typing
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from ops.export.columns import COLUMNS, OF_EVENTS, OF_RECORDS, Kind, Row
from schemas.events import EVENTS

PLAIN = {str: Kind.TEXT, int: Kind.INTEGER, float: Kind.NUMBER, bool: Kind.TRUTH}


def kind_of(annotation: Any) -> Kind:
    """The kind of a field's values; None apart."""
    if get_origin(annotation) in (typing.Union, types.UnionType):
        (annotation,) = {kind for kind in get_args(annotation) if kind is not type(None)}
    if get_origin(annotation) is typing.Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is tuple:
        return Kind.TEXTS
    if get_origin(annotation) is Literal or (isinstance(annotation, type) and issubclass(annotation, Enum)):
        return Kind.TEXT
    return PLAIN[annotation]


def test_each_column_is_a_field_of_events_with_values_of_its_kind() -> None:
    wrong = []
    for column in OF_EVENTS:
        found = [event.model_fields[column.source] for event in EVENTS if column.source in event.model_fields]
        kinds = {kind_of(field.annotation) for field in found}
        if kinds != {column.kind}:
            wrong.append(f"{column.name}: {kinds}")
    assert wrong == []


def test_names_of_columns_are_distinct_and_each_has_a_meaning() -> None:
    names = [column.name for column in COLUMNS]
    assert len(set(names)) == len(names)
    assert [column.name for column in COLUMNS if not column.meaning.endswith(".")] == []


def test_columns_of_records_are_the_fields_of_a_row() -> None:
    names = ["at" if name == "at_ms" else name for name in Row._fields[:-1]]
    assert names == [column.name for column in OF_RECORDS]
