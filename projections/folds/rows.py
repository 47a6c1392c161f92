"""Rows and their JSON: what all folds share."""

from functools import lru_cache
from typing import Any, TypeAlias, TypedDict

import msgspec

from schemas.headers import rfc3339
from schemas.ids import split_execution_key
from schemas.record import Event

# A row of whatever table, for readers that do not tell the tables apart: mypy checks nothing of it.
Row: TypeAlias = Any

place_of = lru_cache(maxsize=20_000)(split_execution_key)

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder()


class Owner(TypedDict):
    """The columns with which the row of anything in an execution begins: whose it is, and in which execution."""

    tenant: str
    project: str
    execution_id: str


class Source(TypedDict):
    """The columns that say which record a row was made of, where a record makes a row of its own."""

    at_ms: int
    event_id: str
    log_partition: int
    log_offset: int


def owner_of(event: Event) -> Owner:
    """Whose an event of an execution is."""
    tenant, project, execution_id = place_of(event.key)
    return {"tenant": tenant, "project": project, "execution_id": execution_id}


def source_of(event: Event) -> Source:
    """Which record an event is."""
    return {
        "at_ms": event.meta.at_ms,
        "event_id": event.meta.event_id,
        "log_partition": event.partition,
        "log_offset": event.offset,
    }


def json_text(value: Any) -> str:
    """Compact JSON of a list or tuple of plain values."""
    return _ENCODER.encode(value).decode()


def json_value(text: str | None) -> Any:
    """The value of stored JSON text; None for none."""
    return None if text is None else _DECODER.decode(text)


def moment(at_ms: int | None) -> str | None:
    """RFC 3339 of a stored time, or None."""
    return None if at_ms is None else rfc3339(at_ms)
