"""Records: bytes as the log carries them, and what a reader makes of them."""

from typing import Any, NamedTuple

from schemas.actor import Actor
from schemas.message import Message

Headers = tuple[tuple[str, bytes], ...]


class OutRecord(NamedTuple):
    """A record before it is appended."""

    key: bytes
    value: bytes
    headers: Headers

    def size_bytes(self) -> int:
        """An upper bound of its size inside a Kafka batch (record format v2, every varint at its longest)."""
        size = 36 + len(self.key) + len(self.value)
        for name, value in self.headers:
            size += len(name) + len(value) + 10
        return size


class RawRecord(NamedTuple):
    """A record as read from a partition. `timestamp_ms` is the broker's where the topic says so.

    Kafka's null key or value is empty bytes here.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes
    headers: Headers


def raw_record(record: Any) -> RawRecord:
    """A consumer's record as every reader of the log takes it: what a foreign producer left out is empty.

    Args:
        record: an `aiokafka.ConsumerRecord`; this room knows no client.
    """
    headers: Any = record.headers
    if None in [value for _, value in headers]:
        headers = tuple([(name, value or b"") for name, value in headers])
    return RawRecord(
        record.partition, record.offset, record.timestamp, record.key or b"", record.value or b"", headers
    )


class EventMeta(NamedTuple):
    """What every event's headers say.

    `version` counts the aggregate's events from 1; `term` is the offset of the claim that the writer held;
    `command_digest` names the body of the command that caused it, so that a repeat can be told from a reuse.
    `command_offset` is where that command stands on its topic (−1: no command caused it), so that a writer
    that recovers knows from where commands are still to be decided.
    """

    event_id: str
    at_ms: int
    term: int
    version: int
    command_id: str
    command_digest: str
    tenant: str
    command_offset: int = -1


class Event(NamedTuple):
    """A recorded fact: body, headers, and where it stands in the log."""

    body: Message
    meta: EventMeta
    key: bytes
    partition: int
    offset: int

    @property
    def type(self) -> str:
        """The event's type: its body's class name."""
        return type(self.body).__name__


class Command(NamedTuple):
    """A command that was read and whose sender is proved.

    `at_ms` is the broker's append time; `digest` names the body. `by_token` tells that its sender produces to the log
    itself, and chose its id.
    """

    body: Message
    actor: Actor
    command_id: str
    digest: str
    key: bytes
    partition: int
    offset: int
    at_ms: int
    by_token: bool = False


class UnreadableRecord(ValueError):
    """A record that cannot be read or believed; it goes to the dead letters with `reason`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def headers_by_name(headers: Headers) -> dict[str, bytes]:
    """The headers of a record; those without a value (Kafka's null) are left out.

    Raises:
        UnreadableRecord: one of CloudEvents' or ours stands there twice, so that two readers could differ.
    """
    found = dict(headers)
    if len(found) != len(headers):
        ours = [name for name, _ in headers if name.startswith(("ce_", "placet_"))]
        if len(set(ours)) != len(ours):
            raise UnreadableRecord("malformed", "a header stands there twice")
    if None in found.values():
        return {name: value for name, value in found.items() if value is not None}
    return found
