"""The uses of standing rules that are counted on one partition: aggregates next to its executions."""

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec import field as msgspec_field

from schemas.events.executions import CommandRefused
from schemas.events.rules import RuleUseRefused, RuleUseReserved
from schemas.ids import split_rule_uses_key
from schemas.message import Message
from schemas.record import Command, Event, EventMeta
from schemas.refusals import Refusal
from services.domain.memory import rule_uses
from services.domain.memory.rule_uses import RuleUses
from services.domain.memory.standing_rules import StandingRules
from services.runtime.answered import Answered, Seen
from services.runtime.effects import NOTHING, Answer, Effects

COMMANDS_MAX = 10_000


class UsesEntry(Struct):
    """The uses of one rule, with its event count and the newest commands that it has answered."""

    state: RuleUses = RuleUses()
    version: int = 0
    commands: Answered = msgspec_field(default_factory=Answered)
    unreadable: str = ""


@dataclass(slots=True)
class RuleUsesPartition:
    """All rules whose uses are counted on a partition."""

    standing: Callable[[], StandingRules]
    entries: dict[bytes, UsesEntry] = field(default_factory=dict)

    def decide(self, command: Command, now_ms: int) -> list[Message]:
        """See `Aggregates.decide`."""
        entry = self.entries.get(command.key, UsesEntry())
        if entry.unreadable:
            return [_unreadable(command)]
        found = split_rule_uses_key(command.key)
        rule = self.standing().find(found[0], found[2]) if found else None
        return rule_uses.decide(entry.state, rule, command.body, command.actor, now_ms)

    def apply(self, event: Event) -> Effects:
        """See `Aggregates.apply`."""
        entry = self._entry(event.key, event.meta)
        entry.commands.note(event)
        entry.commands.trim(COMMANDS_MAX)
        if entry.unreadable:
            return NOTHING
        entry.state = rule_uses.evolve(entry.state, event.body)
        return _answer(event, entry.state)

    def set_aside(self, key: bytes, meta: EventMeta, error: Exception) -> None:
        """Take an event of a rule's uses that cannot be read: no further use is granted."""
        entry = self._entry(key, meta)
        entry.commands.note_unread(meta)
        entry.unreadable = f"event {meta.event_id}: {type(error).__name__}: {error}"

    def seen(self, key: bytes, command_id: str, digest: str) -> Seen:
        """See `Aggregates.seen`."""
        entry = self.entries.get(key)
        return "new" if entry is None else entry.commands.seen(command_id, digest)

    def next_version(self, key: bytes) -> int:
        """See `Aggregates.next_version`."""
        entry = self.entries.get(key)
        return entry.version + 1 if entry else 1

    def _entry(self, key: bytes, meta: EventMeta) -> UsesEntry:
        entry = self.entries.setdefault(key, UsesEntry())
        entry.version = meta.version
        return entry


def _answer(event: Event, state: RuleUses) -> Effects:
    body = event.body
    reservation_id = ""
    if isinstance(body, RuleUseReserved | RuleUseRefused):
        reservation_id = body.reservation_id
    elif isinstance(body, CommandRefused) and body.code == Refusal.DUPLICATE:
        reservation_id = body.subject_id
    use = state.uses.get(reservation_id)
    if use is None:
        return NOTHING
    return (Answer(event.key, reservation_id, event.meta.command_id, use),)


def _unreadable(command: Command) -> CommandRefused:
    return CommandRefused(
        code=Refusal.UNAVAILABLE,
        command=type(command.body).__name__,
        subject_id="",
        detail="a recorded use of this rule cannot be read by this version: an operator must inspect the log",
        by=command.actor.subject,
    )
