"""What hypothesis draws from: any message of any type, any JSON value that has a canonical form, records."""

from __future__ import annotations

import types
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st

from schemas.canonical import MAX_SAFE_INTEGER
from schemas.codec import MODELS
from schemas.message import Message
from schemas.record import RawRecord

LONG = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
DOUBLE = st.floats(allow_nan=False, allow_infinity=False)
SAFE_INTEGER = st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
# A float that is an integer beyond 2^53 is refused like the integer that it would be written as.
SAFE_DOUBLE = DOUBLE.filter(lambda number: not MAX_SAFE_INTEGER < abs(number) < 1e21)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | SAFE_INTEGER | SAFE_DOUBLE | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)

HEADER_NAMES = st.sampled_from(
    [
        "ce_id",
        "ce_time",
        "ce_type",
        "ce_subject",
        "placet_term",
        "placet_version",
        "placet_command_id",
        "placet_command_digest",
        "placet_command_offset",
        "placet_tenant",
        "placet_envelope",
        "placet_signature",
        "placet_token",
    ]
)


def of_annotation(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of one field's annotation."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(of_annotation, arguments))
    if origin is tuple:
        return st.lists(of_annotation(arguments[0]), max_size=4).map(tuple)
    if origin is dict:
        return st.dictionaries(of_annotation(arguments[0]), of_annotation(arguments[1]), max_size=4)
    if origin is Annotated:
        return of_annotation(arguments[0])
    return _plain(annotation)


def messages(model: type[Message]) -> st.SearchStrategy[Message]:
    """Messages of one type."""
    fields = {name: of_annotation(field.annotation) for name, field in model.model_fields.items()}
    return st.builds(model, **fields)


def any_message() -> st.SearchStrategy[Message]:
    """Messages of every type."""
    return st.sampled_from(sorted(MODELS.values(), key=lambda model: model.__name__)).flatmap(messages)


def raw_records(
    headers: Mapping[str, bytes], key: st.SearchStrategy[bytes], value: st.SearchStrategy[bytes]
) -> st.SearchStrategy[RawRecord]:
    """Records with any bytes in them; the given headers, with some replaced, left out or repeated."""
    noise = st.lists(st.tuples(HEADER_NAMES | st.text(max_size=10), st.binary(max_size=80)), max_size=6)
    kept = st.lists(st.sampled_from(sorted(headers.items())), max_size=len(headers) + 1)
    return st.builds(
        lambda key, value, kept, noise: RawRecord(0, 1, 2, key, value, (*kept, *noise)),
        key,
        value,
        kept,
        noise,
    )


def _plain(annotation: Any) -> st.SearchStrategy[Any]:
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return st.sampled_from(annotation)
    known: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXT,
        int: LONG,
        float: DOUBLE,
        bool: st.booleans(),
        type(None): st.none(),
    }
    return known[annotation]
