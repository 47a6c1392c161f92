"""Records: the bytes that the log carries, and the events and commands read from them."""

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
        """An upper bound of the record's size in a Kafka batch (record format v2, every varint at its longest)."""
        size = 36 + len(self.key) + len(self.value)
        for name, value in self.headers:
            size += len(name) + len(value) + 10
        return size


class RawRecord(NamedTuple):
    """A record as read from a partition. `timestamp_ms` is the broker's if the topic is configured so.

    Kafka's null key or value is empty bytes here.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes
    headers: Headers


def raw_record(record: Any) -> RawRecord:
    """A consumer's record in the form that every reader of the log uses; parts that a producer left out are empty.

    Args:
        record: an `aiokafka.ConsumerRecord`; not imported, as this package depends on no client.
    """
    headers: Any = record.headers
    if None in [value for _, value in headers]:
        headers = tuple([(name, value or b"") for name, value in headers])
    return RawRecord(
        record.partition, record.offset, record.timestamp, record.key or b"", record.value or b"", headers
    )


class EventMeta(NamedTuple):
    """The contents of every event's headers.

    `version` counts the aggregate's events from 1. `term` is the offset of the claim that the writer held.
    `command_digest` is the digest of the body of the command that caused the event; it distinguishes a repeat from a
    reuse. `command_offset` is that command's offset on its topic (−1: no command caused it); from it a recovering
    writer derives which commands are still undecided. `trace` is the trace context in which the command was decided;
    empty if it was not traced (`schemas.trace_context`).
    """

    event_id: str
    at_ms: int
    term: int
    version: int
    command_id: str
    command_digest: str
    tenant: str
    command_offset: int = -1
    trace: str = ""


class Event(NamedTuple):
    """A recorded fact: body, headers, and its place in the log."""

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
    """A command that was read and whose sender is verified.

    `at_ms` is the broker's append time; `digest` is the digest of the body. `by_token` is true if the sender produced
    to the log itself and chose the command id. `trace` is its sender's trace context; empty without one.
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
    trace: str = ""


class UnreadableRecord(ValueError):
    """A record that cannot be read or verified; it goes to the dead letters with `reason`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def headers_by_name(headers: Headers) -> dict[str, bytes]:
    """The headers of a record; those without a value (Kafka's null) are left out.

    Raises:
        UnreadableRecord: a header of CloudEvents or Placet occurs twice, so that two readers could differ.
    """
    found = dict(headers)
    if len(found) != len(headers):
        ours = [name for name, _ in headers if name.startswith(("ce_", "placet_"))]
        if len(set(ours)) != len(ours):
            raise UnreadableRecord("malformed", "a header appears twice")
    if None in found.values():
        return {name: value for name, value in found.items() if value is not None}
    return found
