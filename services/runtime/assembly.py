"""Assembly of a writer: the aggregates of a partition and their dependencies."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from log.places import TopicPartition
from log.port import Appender, CommandFeed, Log
from schemas.envelope import Signer, Verifier
from schemas.event_signatures import EventSigner, LogSignatures
from schemas.term import NO_CLAIM, rule_of
from schemas.topics import Topics
from services.domain.definitions import Definitions
from services.runtime.addressing import OF_DEFINITIONS, OF_EXECUTIONS
from services.runtime.clock import LogClock, wall_ms
from services.runtime.command_forwarder import CommandForwarder, Published
from services.runtime.deadlines import Deadlines
from services.runtime.definitions_book import AdoptedRules, Adoption, DefinitionsBook, TrustFor, unknown_trust
from services.runtime.definitions_partition import DefinitionsPartition
from services.runtime.executions_partition import ExecutionsPartition
from services.runtime.large_commands import LargeCommands
from services.runtime.ledger import Ledger
from services.runtime.log_time import LogTime, asking
from services.runtime.meters import UNSEEN, Meters
from services.runtime.rounds import Rounds
from services.runtime.snapshots import LedgerSnapshots, Snapshots
from services.runtime.trial import Trial
from services.runtime.writer import PartitionWriter

# One is folded while the next is fetched; a third may wait for a slow broker.
RECOVERED_TOGETHER = 3


def fresh_seed() -> str:
    """A seed that nobody can foretell: 128 random bits."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Assembly:
    """The dependencies that all writers of a worker share.

    `partitions` is the count of the executions topic; `fresh_id` makes claim ids; `local_ms` is this process's clock,
    used only to guess when to nudge; `fresh_seed` makes the seeds of draws; `trust` is cited in verdicts; `signer`
    signs what is carried between partitions, `event_signer` what is recorded; `signatures` verifies what others
    recorded; `trial` tries commands that may have ended other processes; `meters` count the work; `large` limits the
    time of large commands in all partitions; `counted` is, for each partition, the claim that others are known to
    have counted.
    """

    log: Log
    verifier: Verifier
    book: DefinitionsBook
    empty: Definitions
    worker_id: str
    partitions: int
    fresh_id: Callable[[], str]
    local_ms: Callable[[], int] = field(default=wall_ms)
    fresh_seed: Callable[[], str] = field(default=fresh_seed)
    trust: TrustFor = unknown_trust
    signer: Signer = field(kw_only=True)
    event_signer: EventSigner | None = field(default=None, kw_only=True)
    signatures: LogSignatures | None = field(default=None, kw_only=True)
    trial: Trial | None = field(default=None, kw_only=True)
    meters: Meters = UNSEEN
    large: LargeCommands | None = None
    counted: Mapping[int, int] = field(default_factory=dict, kw_only=True)
    _recovering: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(RECOVERED_TOGETHER))

    def build(self, commands_tp: TopicPartition, appender: Appender, feed: CommandFeed) -> PartitionWriter:
        """A writer for a commands partition, on an empty ledger."""
        topics: Topics = self.log.topics
        if commands_tp.topic == topics.definition_commands:
            return self._definitions_writer(commands_tp, appender, feed)
        return self._executions_writer(commands_tp, appender, feed)

    def _executions_writer(
        self, commands_tp: TopicPartition, appender: Appender, feed: CommandFeed
    ) -> PartitionWriter:
        clock = LogClock(self.local_ms)
        adoption = Adoption(self.book)
        rules = AdoptedRules(adoption, self.trust)
        executions = ExecutionsPartition(lambda: rules, large=self.large, fresh_seed=self.fresh_seed)
        deadlines = Deadlines(
            clock, executions.due_of, writer=self.fresh_id(), waiting=lambda: tuple(executions.live)
        )
        events_tp = TopicPartition(self.log.topics.executions, commands_tp.partition)
        ledger = Ledger(executions, rule_of(self.signatures, events_tp.topic))
        # While signing is off, deciders do not sign snapshots either.
        keys = self.signatures.keys if self.signatures and self.event_signer else None
        snapshots = Snapshots(self.log, events_tp, self.event_signer, keys)
        return PartitionWriter(
            log=self.log,
            appender=appender,
            commands_tp=commands_tp,
            events_tp=events_tp,
            worker_id=self.worker_id,
            counted=self.counted.get(events_tp.partition, NO_CLAIM),
            rounds=Rounds(
                ledger,
                self.verifier,
                commands_tp.partition,
                self.partitions,
                OF_EXECUTIONS,
                commands_tp.topic,
            ),
            adoption=adoption,
            start_commands=lambda offset: feed.start_from(commands_tp, offset),
            fresh_id=self.fresh_id,
            deadlines=deadlines,
            time=self._time(commands_tp.partition, clock),
            forwarder=CommandForwarder(
                executions=executions,
                published=Published(lambda: self.book.current.standing, self.book.answered),
                signer=self.signer,
                topics=self.log.topics,
                partitions=self.partitions,
                send=self.log.send,
            ),
            snapshots=LedgerSnapshots(snapshots, ledger, executions),
            event_signer=self.event_signer,
            trial=self.trial,
            recovering=self._recovering,
            meters=self.meters,
        )

    def _definitions_writer(
        self, commands_tp: TopicPartition, appender: Appender, feed: CommandFeed
    ) -> PartitionWriter:
        definitions = DefinitionsPartition(self.empty)
        events_tp = TopicPartition(self.log.topics.definitions, commands_tp.partition)
        ledger = Ledger(definitions, rule_of(self.signatures, events_tp.topic), offload=self.book.offload)
        return PartitionWriter(
            log=self.log,
            appender=appender,
            commands_tp=commands_tp,
            events_tp=events_tp,
            worker_id=self.worker_id,
            # It reads commands on the thread that decides definitions, so it needs a verifier (and cache) of its own.
            rounds=Rounds(
                ledger, replace(self.verifier), commands_tp.partition, 1, OF_DEFINITIONS, commands_tp.topic
            ),
            adoption=None,
            event_signer=self.event_signer,
            trial=self.trial,
            start_commands=lambda offset: feed.start_from(commands_tp, offset),
            fresh_id=self.fresh_id,
            time=self._time(0, LogClock(self.local_ms)),
            meters=self.meters,
        )

    def _time(self, partition: int, clock: LogClock) -> LogTime:
        """The definitions' time is read from the executions' first commands partition, which accepts nudges."""
        ask = asking(self.log, TopicPartition(self.log.topics.commands, partition), self.partitions)
        return LogTime(clock, ask, partition, self.partitions)
