"""Rows and their JSON: what all folds share."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from schemas.headers import rfc3339
from schemas.ids import split_execution_key
from schemas.message import Message
from schemas.record import Event

Row = dict[str, Any]
Change = Callable[[Any, Event], Row]
Changes = Mapping[type[Message], Change]

place_of = lru_cache(maxsize=20_000)(split_execution_key)

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder()


def owner_of(event: Event) -> Row:
    """The columns with which the row of anything in an execution begins: whose it is, and in which execution."""
    tenant, project, execution_id = place_of(event.key)
    return {"tenant": tenant, "project": project, "execution_id": execution_id}


def json_text(value: Any) -> str:
    """Compact JSON of a list or tuple of plain values."""
    return _ENCODER.encode(value).decode()


def json_value(text: str | None) -> Any:
    """The value of stored JSON text; None for none."""
    return None if text is None else _DECODER.decode(text)


def moment(at_ms: int | None) -> str | None:
    """RFC 3339 of a stored time, or None."""
    return None if at_ms is None else rfc3339(at_ms)
