"""Dead letters: records that could not be read or verified, with the reason."""

from collections.abc import Mapping
from typing import Any

from projections.folds.resources import resource_of
from projections.folds.text import NUL, SHOWN_AS
from projections.tables.log import DEAD_LETTERS, DeadLetterRow
from schemas.ids import is_client_id
from schemas.record import RawRecord

# The owner of a letter whose key is not one of ours is unknown.
NOBODY = ""
# A key or header may be as long as a record; the views need no more than its beginning.
TEXT_MAX_CHARS = 1_024
# The last millisecond of the year 9999, after which RFC 3339 has no time.
LATEST_MS = 253_402_300_799_999


def dead_letter_row(raw: RawRecord) -> DeadLetterRow:
    """The row of a record of the dead-letter topic; it names the topic, partition and offset of the original.

    Args:
        raw: written by a decider (`services.runtime.dead_letters`): the original's bytes, and `placet_` headers.
            Other roles can write to the topic, too, so nothing is presumed of them, and longer texts are cut.
    """
    headers = {name: (value or b"").decode(errors="replace") for name, value in raw.headers}
    key = _shown(raw.key.decode(errors="replace"))
    owner, _, rest = key.partition("/")
    return {
        "topic": _text(headers, "placet_topic"),
        "log_partition": _integer(headers.get("placet_partition"), raw.partition),
        "log_offset": _integer(headers.get("placet_offset"), raw.offset),
        "at_ms": min(max(_integer(headers.get("placet_at_ms"), raw.timestamp_ms), 0), LATEST_MS),
        "tenant": owner if rest and is_client_id(owner) else NOBODY,
        "log_key": key,
        "reason": _text(headers, "placet_reason"),
        "detail": _text(headers, "placet_detail"),
    }


def dead_letter_json(row: DeadLetterRow) -> dict[str, Any]:
    """A dead letter as the APIs return it; its id names the place of the original."""
    return _RESOURCE(row)


def _id(row: DeadLetterRow) -> str:
    return f"{row['topic']}/{row['log_partition']}/{row['log_offset']}"


def _text(headers: Mapping[str, str], name: str) -> str:
    return _shown(headers.get(name, ""))


def _shown(text: str) -> str:
    return text[:TEXT_MAX_CHARS].replace(NUL, SHOWN_AS)


def _integer(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 19 else otherwise


_RESOURCE = resource_of(
    DEAD_LETTERS,
    ("id", _id),
    "topic",
    ("partition", "log_partition"),
    ("offset", "log_offset"),
    "at_ms",
    ("key", "log_key"),
    "reason",
    "detail",
)
