"""Record headers: CloudEvents (binary mode) and Placet's own, for events and for commands."""

from datetime import UTC, datetime
from functools import lru_cache

from schemas import codec
from schemas.commands import COMMANDS
from schemas.message import Message
from schemas.record import Event, EventMeta, Headers, OutRecord, RawRecord, UnreadableRecord

SOURCE = b"/placet/decider"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def event_record(body: Message, meta: EventMeta, key: bytes) -> OutRecord:
    """An event as a record."""
    headers: Headers = (
        ("ce_specversion", b"1.0"),
        ("ce_id", meta.event_id.encode()),
        ("ce_type", codec.SUBJECTS[type(body)].encode()),
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
    return OutRecord(key, codec.encode(body), headers)


def read_event(raw: RawRecord) -> Event:
    """The event in a record.

    Raises:
        UnreadableRecord: see `codec.decode`; or a header is missing or malformed.
    """
    body = codec.decode(raw.value)
    if type(body) in _COMMAND_TYPES:
        raise UnreadableRecord("malformed", "a command stands on an events topic")
    headers = dict(raw.headers)
    try:
        meta = EventMeta(
            event_id=headers["ce_id"].decode(),
            at_ms=epoch_ms(headers["ce_time"].decode()),
            term=int(headers["placet_term"]),
            version=int(headers["placet_version"]),
            command_id=headers["placet_command_id"].decode(),
            command_digest=headers["placet_command_digest"].decode(),
            tenant=headers["placet_tenant"].decode(),
            command_offset=int(headers["placet_command_offset"]),
        )
    except (KeyError, ValueError) as error:
        raise UnreadableRecord("malformed", f"event headers: {error!r}") from error
    return Event(body, meta, raw.key, raw.partition, raw.offset)


@lru_cache(maxsize=1024)
def rfc3339(at_ms: int) -> str:
    """RFC 3339 in UTC with milliseconds, of a time in ms since the epoch."""
    seconds, ms = divmod(at_ms, 1000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{ms:03d}Z"


@lru_cache(maxsize=1024)
def epoch_ms(text: str) -> int:
    """Milliseconds since the epoch of an RFC 3339 time with a zone.

    Raises:
        ValueError: not such a time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"the time {text!r} has no zone: end it with Z")
    delta = moment - EPOCH
    return delta.days * 86_400_000 + delta.seconds * 1000 + delta.microseconds // 1000


_COMMAND_TYPES = frozenset(COMMANDS)
