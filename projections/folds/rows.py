"""Rows and their JSON: the helpers that all folds share."""

from functools import lru_cache
from typing import Any, TypeAlias, TypedDict

import msgspec

from schemas.headers import rfc3339
from schemas.ids import split_execution_key
from schemas.record import Event

# A row of any table, for readers that do not distinguish the tables: mypy does not check it.
Row: TypeAlias = Any

place_of = lru_cache(maxsize=20_000)(split_execution_key)

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder()


class Owner(TypedDict):
    """The first columns of every row of an execution: its tenant, its project and the execution."""

    tenant: str
    project: str
    execution_id: str


class Source(TypedDict):
    """The columns that name the record a row was made from, for tables with one row per record."""

    at_ms: int
    event_id: str
    log_partition: int
    log_offset: int


def owner_of(event: Event) -> Owner:
    """The owner of an event of an execution."""
    tenant, project, execution_id = place_of(event.key)
    return {"tenant": tenant, "project": project, "execution_id": execution_id}


def source_of(event: Event) -> Source:
    """The record that an event was read from."""
    return {
        "at_ms": event.meta.at_ms,
        "event_id": event.meta.event_id,
        "log_partition": event.partition,
        "log_offset": event.offset,
    }


def json_text(value: Any) -> str:
    """Encode a list or tuple of plain values as compact JSON."""
    return _ENCODER.encode(value).decode()


def json_value(text: str | None) -> Any:
    """Decode stored JSON text; None for None."""
    return None if text is None else _DECODER.decode(text)


def moment(at_ms: int | None) -> str | None:
    """A stored time in RFC 3339, or None."""
    return None if at_ms is None else rfc3339(at_ms)
