"""The executions of one partition, with the command ids that each has answered."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from msgspec import Struct

from schemas.events.executions import ExecutionStarted
from schemas.ids import split_execution_key, split_rule_uses_key
from schemas.message import Message
from schemas.principals import People
from schemas.record import Command, Event, EventMeta
from services.domain.context import Context, InForce, Tool
from services.domain.execution import execution
from services.domain.execution.evolve import evolve, start
from services.domain.execution.parked import next_moment
from services.domain.memory.standing_rules import Place, StandingRule, StandingRules
from services.domain.policy import Verdict
from services.domain.state import CLOSED, Call, Execution
from services.domain.trust.reading import Contrary
from services.runtime.answered import Answered, NewestAnswered, Seen
from services.runtime.contrary_facts import ContraryFacts
from services.runtime.effects import NOTHING, Effects, Reserving
from services.runtime.large_commands import LargeCommands
from services.runtime.rule_changes import PendingRuleChanges
from services.runtime.rule_uses_partition import RuleUsesPartition

Due = tuple[int, str]  # the time (ms), and the call or hold that is due

RECENT_MAX = 1_000
# The number of commands refused without an execution that are kept for each sender.
ORPHANS_MAX = 1_000


class Rules(Protocol):
    """The definitions in force, for decisions."""

    @property
    def through_offset(self) -> int:
        """The offset of the newest definition in force."""
        ...

    @property
    def people(self) -> People:
        """The published principals."""
        ...

    @property
    def standing(self) -> StandingRules:
        """The standing rules."""
        ...

    def tool(self, tenant: str, name: str, project: str) -> Tool | None:
        """A published tool, as a project sees it."""
        ...

    def judge(
        self,
        execution: Execution,
        call: Call,
        now_ms: int,
        *,
        rests: Callable[[StandingRule], bool],
        contrary: Callable[[str], Contrary | None],
        against: Callable[[str], Contrary | None],
    ) -> Verdict:
        """See `Definitions.judge`."""
        ...


class Entry(Struct):
    """One execution, with its event count and the commands it has answered."""

    state: Execution
    version: int
    commands: Answered


@dataclass(slots=True)
class ExecutionsPartition:
    """All executions of a partition.

    An execution that has ended and has nothing left to settle moves to `recent`, where late commands still get their
    exact refusal. From there, in order of ending, only its key is kept, so that its id is never used again. `uses`
    are the standing rules that are counted here, and `rule_changes` what these executions ask to change of rules.
    `reserving` are the executions with calls that wait for a use of one. `unreadable` maps executions with an event
    that cannot be folded to the reason: they get no further decisions. `orphans` are the commands that were answered
    without an execution, or with only its key. `contrary` are decisions that trust may not have counted yet, and
    `fresh_seed` makes the seeds of draws. `large` decides whose large commands are put off; without it none are.
    """

    rules: Callable[[], Rules]
    live: dict[bytes, Entry] = field(default_factory=dict)
    recent: OrderedDict[bytes, Entry] = field(default_factory=OrderedDict)
    forgotten: set[bytes] = field(default_factory=set)
    unreadable: dict[bytes, str] = field(default_factory=dict)
    orphans: NewestAnswered = field(default_factory=NewestAnswered)
    reserving: set[bytes] = field(default_factory=set)
    rule_changes: PendingRuleChanges = field(default_factory=PendingRuleChanges)
    contrary: ContraryFacts = field(default_factory=ContraryFacts)
    large: LargeCommands | None = None
    fresh_seed: Callable[[], str] = str
    uses: RuleUsesPartition = field(init=False)

    def __post_init__(self) -> None:
        self.uses = RuleUsesPartition(lambda: self.rules().standing)

    def decide(self, command: Command, now_ms: int) -> list[Message]:
        """See `Aggregates.decide`."""
        key = command.key
        entry = self._entry(key)
        if entry is None and split_rule_uses_key(key) is not None:
            return self.uses.decide(command, now_ms)
        ctx = self._context(command, now_ms)
        if key in self.unreadable:
            return execution.decide_unreadable(command.body, ctx)
        if key in self.forgotten:
            return execution.decide_forgotten(command.body, ctx)
        state = entry.state if entry else None
        if self.large is None:
            return execution.decide(state, command.body, ctx)
        return self.large.decided(
            state,
            command.body,
            command.actor,
            lambda: execution.decide(state, command.body, ctx),
            lambda why: execution.decide_put_off(command.body, ctx, why),
        )

    def apply(self, event: Event, of: Command | None = None) -> Effects:
        """See `Aggregates.apply`."""
        key = event.key
        entry = self.live.get(key)
        if entry is None:
            if split_rule_uses_key(key) is not None:
                return self.uses.apply(event)
            entry = self.recent.get(key) or self._begin(event)
            if entry is None:
                self.orphans.note(event, ORPHANS_MAX)
                return NOTHING
        effects = NOTHING
        if key not in self.unreadable:
            entry.state = self._evolved(entry.state, event, of)
            effects = self.rule_changes.apply(event)
            self.contrary.apply(event, entry.state)
        entry.commands.note(event)
        self._count(key, entry, event.meta)
        return (*effects, Reserving(key)) if entry.state.reserving else effects

    def _evolved(self, state: Execution, event: Event, of: Command | None) -> Execution:
        fold = partial(evolve, state, event.body, event.meta.at_ms)
        return fold() if of is None or self.large is None else self.large.folded(event.body, of, fold)

    def set_aside(self, event: Event, error: Exception) -> None:
        """See `Aggregates.set_aside`."""
        if split_rule_uses_key(event.key) is not None:
            self.uses.set_aside(event.key, event.meta, error)
            return
        self.unreadable[event.key] = f"{event.type} at offset {event.offset}: {type(error).__name__}: {error}"
        self.apply(event)

    def set_unread_aside(self, key: bytes, meta: EventMeta, error: Exception) -> bool:
        """See `Aggregates.set_unread_aside`."""
        if split_rule_uses_key(key) is not None:
            self.uses.set_aside(key, meta, error)
            return True
        self.unreadable[key] = f"event {meta.event_id}: {error}"
        entry = self._entry(key)
        if entry is None:
            self.orphans.note_unread(key, meta, ORPHANS_MAX)
        else:
            entry.commands.note_unread(meta)
            self._count(key, entry, meta)
        return True

    def seen(self, key: bytes, command_id: str, digest: str) -> Seen:
        """See `Aggregates.seen`."""
        entry = self._entry(key)
        if entry is not None:
            return entry.commands.seen(command_id, digest)
        if split_rule_uses_key(key) is not None:
            return self.uses.seen(key, command_id, digest)
        return self.orphans.seen(key, command_id, digest)

    def next_version(self, key: bytes) -> int:
        """See `Aggregates.next_version`."""
        entry = self._entry(key)
        if entry is not None:
            return entry.version + 1
        return self.uses.next_version(key) if split_rule_uses_key(key) is not None else 1

    def due_of(self, key: bytes) -> Due | None:
        """The time at which something of the execution is due next, and its call or hold; or None."""
        entry = self.live.get(key)
        return next_moment(entry.state) if entry and key not in self.unreadable else None

    def _count(self, key: bytes, entry: Entry, meta: EventMeta) -> None:
        entry.version = meta.version
        self._settle(key, entry)

    def _entry(self, key: bytes) -> Entry | None:
        return self.live.get(key) or self.recent.get(key)

    def _context(self, command: Command, now_ms: int) -> Context:
        rules = self.rules()
        # The project of the key, which matches the sender's (`services.runtime.addressing`).
        tenant, project = command.actor.tenant, command.actor.project
        people = rules.people.of(tenant, project)
        return Context(
            actor=people.resolved(command.actor),
            command_id=command.command_id,
            now_ms=now_ms,
            definitions_through=rules.through_offset,
            tool=lambda name: rules.tool(tenant, name, project),
            judge=lambda execution, call: self._judged(rules, execution, call, now_ms),
            people=people,
            standing=lambda project, agent, tool: self._in_force(rules, (tenant, project, agent, tool)),
            execution_id=split_execution_key(command.key)[2],
            key=command.key.decode(),
            fresh_seed=self.fresh_seed,
        )

    def _judged(self, rules: Rules, execution: Execution, call: Call, now_ms: int) -> Verdict:
        place = (execution.tenant, execution.project, call.agent, call.tool)
        return rules.judge(
            execution,
            call,
            now_ms,
            rests=self.rule_changes.rests,
            contrary=lambda trust_class: self.contrary.of((*place, trust_class)),
            against=lambda digest: self.contrary.of_value((*place, digest)),
        )

    def _in_force(self, rules: Rules, place: Place) -> tuple[InForce, ...]:
        """The rules that are active for an agent and tool, without those that were contradicted here."""
        rule_changes = self.rule_changes
        return tuple(
            InForce(rule.document, (rule.tenant, rule.rule_id) in rule_changes.spent, rule.activators)
            for rule in rules.standing.active(*place)
            if not rule_changes.rests(rule)
        )

    def _begin(self, event: Event) -> Entry | None:
        if not isinstance(event.body, ExecutionStarted) or event.key in self.unreadable:
            return None
        # A command that was refused before the start is a repeat as long as it is remembered here.
        state = start(split_execution_key(event.key), event.body, event.meta.at_ms)
        entry = Entry(state, 0, self.orphans.take(event.key))
        self.live[event.key] = entry
        return entry

    def _settle(self, key: bytes, entry: Entry) -> None:
        state = entry.state
        if state.lifecycle in CLOSED and not _unsettled(state):
            if key in self.live:
                self.recent[key] = self.live.pop(key)
                self._forget_oldest()
        elif key in self.recent:
            # Between two events of one decision nothing may be open: a hold ends, then its call is released again.
            self.live[key] = self.recent.pop(key)
        if state.reserving or key in self.reserving:
            self.note_reserving(key, state)

    def note_reserving(self, key: bytes, state: Execution) -> None:
        """Store whether calls of an execution wait for a use of a standing rule."""
        if state.reserving:
            self.reserving.add(key)
        else:
            self.reserving.discard(key)

    def _forget_oldest(self) -> None:
        if len(self.recent) > RECENT_MAX:
            key, _ = self.recent.popitem(last=False)
            self.forgotten.add(key)


def _unsettled(state: Execution) -> bool:
    """True if a call may still report, or a person must still settle one."""
    return bool(state.due) or any(hold.status == "open" for hold in state.holds.values())
