"""Record headers: CloudEvents (binary mode) and Placet's own, for events and for commands."""

import re
from datetime import UTC, datetime
from functools import lru_cache

from schemas import codec
from schemas.events import EVENTS
from schemas.message import Message
from schemas.record import (
    Event,
    EventMeta,
    Headers,
    OutRecord,
    RawRecord,
    UnreadableRecord,
    headers_by_name,
)
from schemas.trace_context import TRACEPARENT, trace_in

SOURCE = b"/placet/decider"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INTEGER_MAX_DIGITS = 18

_TYPES: dict[type[Message], bytes] = {model: codec.SUBJECTS[model].encode() for model in EVENTS}
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


def event_record(body: Message, meta: EventMeta, key: bytes) -> OutRecord:
    """An event as a record."""
    headers: Headers = (
        ("ce_specversion", b"1.0"),
        ("ce_id", meta.event_id.encode()),
        ("ce_type", _TYPES[type(body)]),
        ("ce_source", SOURCE),
        ("ce_subject", key),
        ("ce_time", rfc3339(meta.at_ms).encode()),
        ("placet_term", b"%d" % meta.term),
        ("placet_version", b"%d" % meta.version),
        ("placet_command_id", meta.command_id.encode()),
        ("placet_command_digest", meta.command_digest.encode()),
        ("placet_tenant", meta.tenant.encode()),
        ("placet_command_offset", b"%d" % meta.command_offset),
    )
    if meta.trace:
        headers = (*headers, (TRACEPARENT, meta.trace.encode()))
    return OutRecord(key, codec.encode(body), headers)


def read_event(raw: RawRecord) -> Event:
    """The event in a record.

    Raises:
        UnreadableRecord: see `codec.decode`; no key, or a header is missing or does not fit.
    """
    body = codec.decode(raw.value)
    headers = headers_by_name(raw.headers)
    _check_labels(raw.key, body, headers)
    meta = _meta(headers)
    return Event(body, meta, raw.key, raw.partition, raw.offset)


def read_meta(raw: RawRecord) -> EventMeta:
    """The contents of an event's headers, also if its body cannot be read.

    Raises:
        UnreadableRecord: a header is missing or does not fit, or the headers belong to another record.
    """
    return read_labels(raw)[1]


def read_labels(raw: RawRecord) -> tuple[str, EventMeta]:
    """As `read_meta`, with the type that the headers name: `placet.events.…`; it need not be the body's.

    Raises:
        UnreadableRecord: as for `read_meta`.
    """
    headers = headers_by_name(raw.headers)
    _check_subject(raw.key, headers)
    return _type_name(headers.get("ce_type", b"")), _meta(headers)


@lru_cache(maxsize=1024)
def rfc3339(at_ms: int) -> str:
    """RFC 3339 in UTC with milliseconds, of a time in ms since the epoch."""
    seconds, ms = divmod(at_ms, 1000)
    # strftime writes years before 1000 with fewer digits than RFC 3339 wants.
    at = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return f"{at.isoformat(timespec='seconds')}.{ms:03d}Z"


@lru_cache(maxsize=1024)
def epoch_ms(text: str) -> int:
    """Milliseconds since the epoch of an RFC 3339 time with a zone.

    Raises:
        ValueError: not such a time.
    """
    # fromisoformat also accepts what RFC 3339 forbids: week dates, times without a zone.
    if _RFC3339.fullmatch(text) is None:
        raise ValueError(f"{text[:40]!r} is not a time like 2026-01-31T09:30:00Z")
    delta = datetime.fromisoformat(text) - EPOCH
    return delta.days * 86_400_000 + delta.seconds * 1000 + delta.microseconds // 1000


def _meta(headers: dict[str, bytes]) -> EventMeta:
    try:
        return EventMeta(
            event_id=headers["ce_id"].decode(),
            at_ms=epoch_ms(headers["ce_time"].decode()),
            term=_integer(headers["placet_term"]),
            version=_integer(headers["placet_version"]),
            command_id=headers["placet_command_id"].decode(),
            command_digest=headers["placet_command_digest"].decode(),
            tenant=headers["placet_tenant"].decode(),
            command_offset=_integer(headers["placet_command_offset"]),
            trace=trace_in(headers),
        )
    except (KeyError, ValueError) as error:
        raise UnreadableRecord("malformed", f"event headers: {error!r}") from error


def _check_labels(key: bytes, body: Message, headers: dict[str, bytes]) -> None:
    expected = _TYPES.get(type(body))
    if expected is None:
        raise UnreadableRecord("malformed", "a command is on an events topic")
    if headers.get("ce_type") != expected:
        raise UnreadableRecord("malformed", "ce_type is not the type of the body")
    _check_subject(key, headers)


def _check_subject(key: bytes, headers: dict[str, bytes]) -> None:
    if not key or headers.get("ce_subject") != key:
        raise UnreadableRecord("malformed", "ce_subject is not the record's key")


@lru_cache(maxsize=256)
def _type_name(label: bytes) -> str:
    return label.decode(errors="replace")


@lru_cache(maxsize=4096)
def _integer(text: bytes) -> int:
    # int() would also accept blanks, underscores and thousands of digits.
    digits = text.removeprefix(b"-")
    if len(digits) > INTEGER_MAX_DIGITS or not digits.isdigit():
        raise ValueError(f"{text[:40]!r} is not an integer")
    return int(text)
