"""A round: the commands that came in are decided one by one, and their events become one batch.

A round is cut only between two commands. Each decision is folded at once, so that the next command of the same
round sees it. If the batch then fails, the ledger is discarded with it and read again from the log.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from schemas.envelope import Verifier
from schemas.event_signatures import SIGNATURE_MAX_BYTES
from schemas.events.executions import CommandAbandoned, CommandRefused, is_reuse_refusal
from schemas.events.log import DefinitionsAdopted, WriterAlive
from schemas.headers import event_record
from schemas.ids import derived_id, event_id, reuse_event_id
from schemas.limits import DECISION_MAX_BYTES, ROUND_MAX_BYTES
from schemas.message import Message
from schemas.record import Command, Event, EventMeta, OutRecord, RawRecord, UnreadableRecord
from schemas.refusals import Refusal
from services.runtime.addressing import check_address
from services.runtime.claim import log_key
from services.runtime.effects import Caused
from services.runtime.ledger import Ledger
from services.runtime.spans import TracedDecision, logged, new_span_id, now_ns, within_decision
from vitals import tracing

ABANDON_AFTER_DEATHS = 3
# Giving up a command reads it, and reading it may be what ends writers.
BURY_AFTER_DEATHS = 6

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A command that cannot be read or verified, and the reason."""

    raw: RawRecord
    reason: str
    detail: str


@dataclass(slots=True)
class Round:
    """A batch that is being built. `base` is the offset at which it must land.

    `touched` are the aggregates with events in it, and `effects` their effects elsewhere once it is acknowledged;
    `traced` are the decisions whose spans are recorded then.
    """

    base: int
    records: list[OutRecord] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    size_bytes: int = 0
    commands: int = 0
    through: int = -1
    touched: set[bytes] = field(default_factory=set)
    effects: list[Caused] = field(default_factory=list)
    traced: list[TracedDecision] = field(default_factory=list)


@dataclass(slots=True)
class Rounds:
    """Decides commands of one partition under one term.

    Attributes:
        ledger: the partition's fold; this round's events are folded into it before they are appended.
        verifier: verifies the sender of a command.
        partition: its number, and `partitions` the count: a command must be in its key's partition.
        of_topic: the types of commands that belong to its topic.
        topic: that topic's name, for spans.
    """

    ledger: Ledger
    verifier: Verifier
    partition: int
    partitions: int
    of_topic: tuple[type[Message], ...]
    topic: str = ""

    def begin(self) -> Round:
        """An empty round that begins at the ledger's position."""
        return Round(base=self.ledger.next_offset)

    def adopt(self, round_: Round, adopted: DefinitionsAdopted) -> None:
        """Put new definitions in force for every later command."""
        self._log_record(round_, adopted, "adopted", adopted.through_offset)

    def alive(self, round_: Round, commands_through: int, attempting: int = -1) -> None:
        """Record that the writer is alive and its progress, or which command it tries next."""
        body = WriterAlive(commands_through=commands_through, attempting=attempting)
        self._log_record(round_, body, "alive", commands_through)

    def decide(self, round_: Round, raws: Iterator[RawRecord]) -> None:
        """Decide commands until there are no more, or the round is full."""
        for raw in raws:
            self.decide_one(round_, raw)
            if round_.size_bytes >= ROUND_MAX_BYTES:
                return

    def decide_one(self, round_: Round, raw: RawRecord) -> None:
        """Decide one command: its events join the round, or it joins the dead letters."""
        round_.commands += 1
        round_.through = raw.offset
        try:
            command = self.verifier.read(raw)
            check_address(command, self.of_topic, self.partition, self.partitions)
        except UnreadableRecord as error:
            round_.dead_letters.append(DeadLetter(raw, error.reason, error.detail))
            return
        if tracing.spans is None:
            self._decide_read(round_, command)
            return
        with logged(tracing.spans, command, self.topic):
            if command.trace and tracing.spans.are_sent:
                self._decide_traced(round_, command)
            else:
                self._decide_read(round_, command)

    def _decide_traced(self, round_: Round, command: Command) -> None:
        span_id, began_ns = new_span_id(), now_ns()
        decided = self._decide_read(round_, within_decision(command, span_id))
        bodies = [event.body for event in decided.events]
        round_.traced.append(TracedDecision(command, span_id, began_ns, now_ns(), bodies))

    def _decide_read(self, round_: Round, command: Command) -> "Decided":
        now_ms = max(command.at_ms, self.ledger.now_ms)
        bodies = self._decide(command, now_ms)
        decided = self._encoded(round_, command, bodies, now_ms)
        if decided.size_bytes > DECISION_MAX_BYTES:
            decided = self._encoded(round_, command, [_too_large(command)], now_ms)
        self._join(round_, decided, command)
        return decided

    def _decide(self, command: Command, now_ms: int) -> list[Message]:
        """A command's events: none for a repeat, and a refusal if its id was used for another body."""
        match self.ledger.aggregates.seen(command.key, command.command_id, command.digest):
            case "new":
                return self.ledger.aggregates.decide(command, now_ms)
            case "reused":
                return [_reused(command)]
        return []

    def decide_alone(self, round_: Round, raw: RawRecord, deaths: int, trials: int = 0) -> None:
        """Decide a command that may have ended earlier writers, or give it up.

        Args:
            round_: an empty round.
            raw: the command.
            deaths: the number of processes and writers that it may have ended (see `PartitionWriter`). After three it
                is given up, after six without even being read.
            trials: how many of them were this writer's children.
        """
        if deaths < ABANDON_AFTER_DEATHS:
            self.decide_one(round_, raw)
        elif deaths < BURY_AFTER_DEATHS:
            self._abandon(round_, raw, deaths, trials)
        else:
            self._bury(round_, raw, f"{deaths} writers ended while deciding it")

    def _abandon(self, round_: Round, raw: RawRecord, deaths: int, trials: int) -> None:
        """Give up a command; its aggregate does not change.

        A command with a known id is not given up: it is answered without being decided.
        """
        try:
            command = self.verifier.read(raw)
            check_address(command, self.of_topic, self.partition, self.partitions)
        except Exception as error:
            # A command that cannot be verified does not belong to its key.
            self._bury(round_, raw, f"{type(error).__name__}: {error}")
            return
        round_.commands += 1
        round_.through = raw.offset
        now_ms = max(command.at_ms, self.ledger.now_ms)
        if self.ledger.aggregates.seen(command.key, command.command_id, command.digest) != "new":
            self._join(round_, self._encoded(round_, command, self._decide(command, now_ms), now_ms), command)
            return
        body = CommandAbandoned(
            command=type(command.body).__name__, command_offset=raw.offset, attempts=deaths, trials=trials
        )
        self._join(round_, self._encoded(round_, command, [body], now_ms), command)
        logger.error("the command at offset %d was abandoned after %d deaths", raw.offset, deaths)

    def _bury(self, round_: Round, raw: RawRecord, detail: str) -> None:
        round_.commands += 1
        round_.through = raw.offset
        round_.dead_letters.append(DeadLetter(raw, "abandoned", detail))
        logger.error("the command at offset %d went to the dead letters: %s", raw.offset, detail)

    def _encoded(self, round_: Round, command: Command, bodies: list[Message], now_ms: int) -> "Decided":
        """A command's events as records, at the offsets after the round's last record."""
        term, key, tenant = self.ledger.rule.claim, command.key, command.actor.tenant
        version = self.ledger.aggregates.next_version(key)
        offset = round_.base + len(round_.records)
        decided = Decided()
        for index, body in enumerate(bodies):
            meta = EventMeta(
                _event_id(command, body, term, index),
                now_ms,
                term,
                version + index,
                command.command_id,
                command.digest,
                tenant,
                command.offset,
                command.trace,
            )
            decided.add(Event(body, meta, key, self.partition, offset + index))
        return decided

    def _join(self, round_: Round, decided: "Decided", of: Command | None = None) -> None:
        for event in decided.events:
            if effects := self.ledger.apply(event, of):
                round_.effects += (Caused(effect, event.meta.trace) for effect in effects)
            round_.touched.add(event.key)
        round_.records += decided.records
        round_.size_bytes += decided.size_bytes + SIGNATURE_MAX_BYTES * len(decided.records)

    def _log_record(self, round_: Round, body: Message, what: str, number: int) -> None:
        term = self.ledger.rule.claim
        offset = round_.base + len(round_.records)
        seed = derived_id(what, self.partition, term, offset, number)
        meta = EventMeta(event_id(seed, term, 0), self.ledger.now_ms, term, 0, seed, "", "")
        decided = Decided()
        decided.add(Event(body, meta, log_key(self.partition), self.partition, offset))
        self._join(round_, decided)


@dataclass(slots=True)
class Decided:
    """The result of one command: events with their records, and an upper bound of their size in a batch."""

    events: list[Event] = field(default_factory=list)
    records: list[OutRecord] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, event: Event) -> None:
        """Add the next event."""
        record = event_record(event.body, event.meta, event.key)
        self.events.append(event)
        self.records.append(record)
        self.size_bytes += record.size_bytes()


def _event_id(command: Command, body: Message, term: int, index: int) -> str:
    if is_reuse_refusal(body):
        # The events of the first body already have the ids derived from the command id.
        return reuse_event_id(_event_name(command), command.digest, term)
    return event_id(_event_name(command), term, index)


def _reused(command: Command) -> CommandRefused:
    return CommandRefused(
        code=Refusal.IDEMPOTENCY_KEY_REUSED,
        command=type(command.body).__name__,
        subject_id=getattr(command.body, "hold_id", "") or getattr(command.body, "call_id", ""),
        detail="this command id was used for another body: use a new one",
        by=command.actor.subject,
    )


def _too_large(command: Command) -> CommandRefused:
    return CommandRefused(
        code=Refusal.TOO_LARGE,
        command=type(command.body).__name__,
        subject_id="",
        detail=f"what it would record is over {DECISION_MAX_BYTES} bytes",
        by=command.actor.subject,
    )


def _event_name(command: Command) -> str:
    """The seed of the ids of a command's events.

    A service chooses its commands' ids, and may use one for two executions, so the key is part of the seed.
    """
    return f"{command.key.decode()}/{command.command_id}" if command.by_token else command.command_id
