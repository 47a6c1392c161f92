"""The definitions as the aggregates of a partition: with the same loop and rules as executions."""

from dataclasses import dataclass, field

from schemas.command_rules import unfit
from schemas.events.executions import CommandRefused, is_reuse_refusal
from schemas.message import Message
from schemas.record import Command, Event, EventMeta
from schemas.refusals import Refusal
from services.domain import publishing
from services.domain.definitions import Definitions
from services.runtime.answered import Answered, NewestAnswered, Seen
from services.runtime.effects import NOTHING, Effects

# The number of refusals for lack of authority that are kept for each sender.
REFUSED_MAX = 1_000
WANT_OF_AUTHORITY = frozenset({Refusal.NOT_AUTHORISED, Refusal.OWN_REQUEST, Refusal.FORBIDDEN_ROLE})


@dataclass(slots=True)
class DefinitionsPartition:
    """All definitions, with the publishing commands that were answered.

    A signed command keeps its sender's roles of that time for ever. So every command for which the sender had the
    authority is remembered with its key for good, even if it was refused for another reason: decided again, it could
    bring back a definition that was replaced since. A command refused for lack of authority (`refused`) is refused
    again, unless its sender has got the authority since, and then the sender could as well send it anew: of these,
    only the newest of each sender are remembered.

    `through_record` is the id and the term of the record at `current.through_offset`.
    """

    current: Definitions
    through_record: tuple[str, int] = ("", -1)
    versions: dict[bytes, int] = field(default_factory=dict)
    answered: dict[bytes, Answered] = field(default_factory=dict)
    refused: NewestAnswered = field(default_factory=NewestAnswered)

    def decide(self, command: Command, now_ms: int) -> list[Message]:
        """See `Aggregates.decide`."""
        if (problem := unfit(command.body)) is not None:
            return [_refused(command, *problem)]
        return publishing.decide(self.current, command.key, command.body, command.actor)

    def apply(self, event: Event, of: Command | None = None) -> Effects:
        """See `Aggregates.apply`."""
        self._note(event, publishing.evolve(self.current, event.body, event.meta.tenant, event.offset))
        return NOTHING

    def set_aside(self, event: Event, error: Exception) -> None:
        """See `Aggregates.set_aside`."""
        tenant = event.meta.tenant
        self._note(event, publishing.set_aside(self.current, event.body, tenant, event.offset, error))

    def set_unread_aside(self, key: bytes, meta: EventMeta, error: Exception) -> bool:
        """See `Aggregates.set_unread_aside`: its effect cannot be known, so nothing more is decided."""
        return False

    def _note(self, event: Event, current: Definitions) -> None:
        self.current = current
        if self.current.through_offset == event.offset:
            self.through_record = (event.meta.event_id, event.meta.term)
        self.versions[event.key] = event.meta.version
        if self._passes(event):
            self.refused.note(event, REFUSED_MAX)
        else:
            self.answered.setdefault(event.key, Answered()).note(event)

    def _passes(self, event: Event) -> bool:
        """True if the command that an event answers need not be remembered for good."""
        body, meta = event.body, event.meta
        if is_reuse_refusal(body):
            # It matters only together with the first body under its id.
            return self.refused.seen(event.key, meta.command_id, meta.command_digest) == "reused"
        return isinstance(body, CommandRefused) and body.code in WANT_OF_AUTHORITY

    def seen(self, key: bytes, command_id: str, digest: str) -> Seen:
        """See `Aggregates.seen`."""
        answered = self.answered.get(key)
        seen = "new" if answered is None else answered.seen(command_id, digest)
        return self.refused.seen(key, command_id, digest) if seen == "new" else seen

    def has_answered(self, key: bytes, command_id: str) -> bool:
        """True if a command is known to have left its trace, whichever body it had."""
        return self.seen(key, command_id, "") != "new"

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
