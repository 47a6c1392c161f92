"""The definitions as a partition's aggregates: the same loop and rules as for executions."""

from dataclasses import dataclass, field

from schemas.command_rules import unfit
from schemas.events.executions import CommandRefused
from schemas.message import Message
from schemas.record import Command, Event, EventMeta
from schemas.refusals import Refusal
from services.domain import definitions
from services.domain.definitions import Definitions
from services.runtime.answered import Answered, Seen

ANSWERED_MAX = 100_000


@dataclass(slots=True)
class DefinitionsPartition:
    """All definitions, with the publishing commands that were answered.

    `through_record` is the id and the term of the record at `current.through_offset`.
    """

    current: Definitions
    through_record: tuple[str, int] = ("", -1)
    versions: dict[bytes, int] = field(default_factory=dict)
    answered: Answered = field(default_factory=Answered)

    def decide(self, command: Command, now_ms: int) -> list[Message]:
        """See `Aggregates.decide`."""
        if (problem := unfit(command.body)) is not None:
            return [_refused(command, *problem)]
        return definitions.decide(self.current, command.key, command.body, command.actor)

    def apply(self, event: Event) -> None:
        """See `Aggregates.apply`."""
        self._note(event, definitions.evolve(self.current, event.body, event.meta.tenant, event.offset))

    def set_aside(self, event: Event, error: Exception) -> None:
        """See `Aggregates.set_aside`."""
        tenant = event.meta.tenant
        self._note(event, definitions.set_aside(self.current, event.body, tenant, event.offset, error))

    def set_unread_aside(self, key: bytes, meta: EventMeta, error: Exception) -> bool:
        """See `Aggregates.set_unread_aside`: what it would hold or forbid nobody can tell, so nothing is decided."""
        return False

    def _note(self, event: Event, current: Definitions) -> None:
        self.current = current
        if self.current.through_offset == event.offset:
            self.through_record = (event.meta.event_id, event.meta.term)
        self.versions[event.key] = event.meta.version
        self.answered.note(event)
        self.answered.trim(ANSWERED_MAX)

    def seen(self, key: bytes, command_id: str, digest: str) -> Seen:
        """See `Aggregates.seen`."""
        return self.answered.seen(command_id, digest)

    def next_version(self, key: bytes) -> int:
        """See `Aggregates.next_version`."""
        return self.versions.get(key, 0) + 1


def _refused(command: Command, code: Refusal, detail: str) -> CommandRefused:
    return CommandRefused(
        code=code,
        command=type(command.body).__name__,
        subject_id="",
        detail=detail,
        by=command.actor.subject,
    )
