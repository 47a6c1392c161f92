"""Log lines as JSON, one object a line, by structlog over the standard logging.

Each line has `timestamp`, `level`, `logger` and `event`; within a piece of work `trace_id`, `span_id` and the ids of
tenant, project, execution, call and hold; with an error `exception`; with suppressed repetitions `suppressed`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog
from opentelemetry.trace import get_current_span
from structlog.types import EventDict

from host.log_text import shown_in_json, shown_surrogates
from schemas.token_text import without_tokens
from vitals.spans import ids_in_hand


class JsonFormatter(structlog.stdlib.ProcessorFormatter):
    """Formats every record as a line of JSON, without the tokens in it."""

    def __init__(self) -> None:
        super().__init__(
            foreign_pre_chain=[
                _begin,
                _ids,
                structlog.processors.StackInfoRenderer(),
                structlog.processors.format_exc_info,
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(_json),
            ],
        )


def _begin(_: Any, level: str, event: EventDict) -> EventDict:
    # In this order in the line. `ops.child` looks for the level there.
    record: logging.LogRecord = event["_record"]
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return {"timestamp": at, "level": level, "logger": record.name, **event}


def _ids(_: Any, __: str, event: EventDict) -> EventDict:
    found = get_current_span().get_span_context()
    if found.is_valid:
        event["trace_id"], event["span_id"] = f"{found.trace_id:032x}", f"{found.span_id:016x}"
    event.update(ids_in_hand())
    if times := getattr(event["_record"], "suppressed", 0):
        event["suppressed"] = times
    return event


def _json(event: EventDict, **_: Any) -> str:
    # Before it is written: in finished JSON the text of a token can begin within an escape (`\\u200e`, `yJ…`).
    found = _with_texts(event, without_tokens)
    try:
        line = orjson.dumps(found).decode()
    except orjson.JSONEncodeError:
        # For a lone surrogate, which strict readers refuse also where it is escaped.
        shown = _with_texts(found, shown_surrogates)
        line = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return shown_in_json(line)


def _with_texts(value: object, change: Callable[[str], str]) -> object:
    """The value with each of its texts changed, and what is no value of JSON by its type alone."""
    match value:
        case str():
            return change(value)
        case dict():
            return {change(str(key)): _with_texts(one, change) for key, one in value.items()}
        case list() | tuple():
            return [_with_texts(one, change) for one in value]
        case None | bool() | int() | float():
            return value
    # Its text could quote what no log line may have.
    return type(value).__name__
