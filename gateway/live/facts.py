"""The tail's reading of the log: each event with the rows as they were right after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from projections.folds.rows import Row
from schemas.events.executions import is_reuse_refusal
from schemas.message import Message
from schemas.record import Event

# The approximate cost of an event's objects beside its body; the limit on memory need not be exact.
EVENT_OVERHEAD_BYTES = 2_000
LONG_TEXTS = frozenset(
    {
        "arguments",
        "context",
        "claims",
        "output",
        "error",
        "result",
        "request",
        "question",
        "options",
        "fields",
        "input_schema",
        "edited_arguments",
        "value",
        "response",
        "feedback",
        "detail",
        "reason",
        "text",
        "details",
        "document",
        "definition",
    }
)


@dataclass(slots=True)
class Fact:
    """An event and the rows after it; None if the event does not concern one, or it is not cached.

    `state_changed` is True if the displayed state of the execution differs from before, and `hold_closed` if the hold
    was open until this event. A refusal changes nothing. `call_before` is the call's row before the event.
    """

    event: Event
    execution: Row | None = None
    call_before: Row | None = None
    call: Row | None = None
    hold: Row | None = None
    turn: Row | None = None
    state_changed: bool = False
    hold_closed: bool = False

    @property
    def call_changed(self) -> bool:
        """True if the displayed call has changed."""
        before, after = self.call_before, self.call
        if after is None or before is after:
            return False
        return before is None or before | {"updated_at_ms": after["updated_at_ms"]} != after


@dataclass(slots=True)
class Group:
    """The events of one command: they are adjacent in one batch of one lane.

    `mark` is the mark of its last event. A group without a command id comes from the decider itself.
    """

    lane: int
    key: bytes
    command_id: str
    digest: str
    facts: list[Fact] = field(default_factory=list)
    mark: int = 0

    @property
    def name(self) -> tuple[str, str, bytes]:
        """The fields that its events share: command id, digest of the command's body, key."""
        return self.command_id, self.digest, self.key

    @property
    def refuses_reuse(self) -> bool:
        """True if it only reports that the command's id had been used for another body."""
        return is_reuse_refusal(self.facts[0].event.body)

    @property
    def first_offset(self) -> int:
        """The offset of its first event."""
        return self.facts[0].event.offset

    @property
    def last_offset(self) -> int:
        """The offset of its last event."""
        return self.facts[-1].event.offset

    def events(self) -> list[Event]:
        """Its events in order."""
        return [fact.event for fact in self.facts]

    def size_bytes(self) -> int:
        """Return its approximate size in memory."""
        size = EVENT_OVERHEAD_BYTES * len(self.facts)
        for fact in self.facts:
            body = fact.event.body
            texts = body.__dict__
            # The short texts are part of the overhead.
            for name in _long_texts(type(body)):
                size += len(texts[name] or "")
        return size


@cache
def _long_texts(kind: type[Message]) -> tuple[str, ...]:
    return tuple(name for name in kind.model_fields if name in LONG_TEXTS)
