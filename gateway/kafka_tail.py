"""The gateway's tail of the log: one consumer a process, without a group, each record decoded once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from log import places
from log.errors import FactsDeleted, LogChanged, LogDamaged, LogError, TopicMissing
from log.kafka.client import KafkaSettings, start, stop
from log.kafka.damage import damage, is_damage
from log.kafka.lag import progress
from schemas.headers import read_event
from schemas.record import Event, RawRecord, UnreadableRecord, raw_record
from schemas.seals import LogSeals
from schemas.term import NO_CLAIM, TermRule, rule_of

logger = logging.getLogger(__name__)

POLL_MS = 1_000
RETRY_S = 0.5

Take = Callable[[int, Sequence[Event], int], None]


@dataclass(frozen=True, slots=True)
class Start:
    """Where a lane begins: the first offset wanted and the claim in force there."""

    topic: str
    partition: int
    offset: int = 0
    claim: int = NO_CLAIM

    @property
    def tp(self) -> TopicPartition:
        """Its partition as the client names it."""
        return TopicPartition(self.topic, self.partition)


@dataclass(slots=True)
class KafkaTail:
    """Reads lanes of facts from given starts on, and gives each batch of events that count to `take`.

    `unreadable` counts records that could not be read; they are the decider's to report. `seals` tells which records
    a decider signed; None where nothing is signed.
    """

    config: KafkaSettings
    starts: Sequence[Start]
    take: Take
    seals: LogSeals | None = None
    unreadable: int = 0
    _consumer: AIOKafkaConsumer | None = field(default=None, init=False)
    _scout: AIOKafkaConsumer | None = field(default=None, init=False)
    _rules: dict[TopicPartition, TermRule] = field(default_factory=dict, init=False)
    _lanes: dict[TopicPartition, int] = field(default_factory=dict, init=False)

    async def open(self) -> None:
        """Connect, check that every start is inside the log, and stand there.

        Raises:
            LogUnreachable: nobody answers.
            TopicMissing: a topic is missing.
            FactsDeleted: its first facts are.
            LogChanged: the log is shorter than where a view stands.
        """
        self._consumer = consumer = self.config.reader()
        # It only asks where the log ends: on the reader's connection that would wait behind a long fetch.
        self._scout = scout = self.config.reader()
        await start(consumer, self.config)
        await start(scout, self.config)
        tps = [begin.tp for begin in self.starts]
        await _check_exist(scout, tps)
        consumer.assign(tps)
        await self._check(scout, tps)
        for lane, begin in enumerate(self.starts):
            consumer.seek(begin.tp, begin.offset)
            self._lanes[begin.tp] = lane
            self._rules[begin.tp] = rule_of(self.seals, begin.topic, begin.claim)

    def rule_at(self, lane: int, claim: int) -> TermRule:
        """The term rule of a lane, from where a claim is in force."""
        return rule_of(self.seals, self.starts[lane].topic, claim)

    def claims(self) -> list[int]:
        """Per lane, the claim in force where this tail stands; empty before it was opened."""
        return [self._rules[begin.tp].claim for begin in self.starts if begin.tp in self._rules]

    async def close(self) -> None:
        """Let go of the connection."""
        clients = (self._consumer, self._scout)
        self._consumer = self._scout = None
        for client in clients:
            if client is not None:
                await stop(client)

    async def run(self) -> None:
        """Read until cancelled; a broker that is away is waited for.

        Raises:
            LogChanged: records were deleted that were still to be read.
            LogDamaged: one is not as it was written.
        """
        consumer = _opened(self._consumer)
        while True:
            try:
                polled = await consumer.getmany(timeout_ms=POLL_MS)
            except OffsetOutOfRangeError as error:
                (tp, offset), *_ = error.args[0].items()
                raise LogChanged(_place(tp), f"no longer holds offset {offset}, which is next") from error
            except KafkaError as error:
                if is_damage(error):
                    raise LogDamaged(damage(consumer, error)) from error
                logger.warning("the tail could not read (%s); trying again", type(error).__name__)
                await asyncio.sleep(RETRY_S)
                continue
            for tp, records in polled.items():
                self._take(tp, records)

    async def end_offsets(self) -> list[int]:
        """Per lane, the high watermark now.

        Raises:
            LogUnreachable: it could not be read.
        """
        tps = [begin.tp for begin in self.starts]
        try:
            ends = await _opened(self._scout).end_offsets(tps)
        except (KafkaError, OSError, TimeoutError) as error:
            raise self.config.translate(error) from error
        return [ends[tp] for tp in tps]

    @property
    def forged(self) -> int:
        """Records in the term in force that no decider signed; they do not count."""
        return sum(rule.seals.forged for rule in self._rules.values() if rule.seals)

    def lag(self, read_through: Sequence[int]) -> int:
        """Records that the broker is known to have and that were not read yet."""
        consumer = self._consumer
        if consumer is None:
            return 0
        known = ((lane, consumer.highwater(begin.tp)) for lane, begin in enumerate(self.starts))
        return sum(max(end - read_through[lane], 0) for lane, end in known if end is not None)

    def progress(self) -> tuple[int, int]:
        """Where it stands, as a sum of offsets, and how many the broker is known to have behind that."""
        return (0, 0) if self._consumer is None else progress(self._consumer, [at.tp for at in self.starts])

    async def _check(self, consumer: AIOKafkaConsumer, tps: Sequence[TopicPartition]) -> None:
        first: Mapping[TopicPartition, int] = await consumer.beginning_offsets(tps)
        ends: Mapping[TopicPartition, int] = await consumer.end_offsets(tps)
        for begin in self.starts:
            low, high = first[begin.tp], ends[begin.tp]
            if low != 0:
                raise FactsDeleted(_place(begin.tp), low, high)
            if begin.offset > high:
                what = f"ends at offset {high}, but the views stand at {begin.offset}"
                raise LogChanged(_place(begin.tp), what)

    def _take(self, tp: TopicPartition, records: Sequence[ConsumerRecord]) -> None:
        rule = self._rules[tp]
        raws = map(raw_record, records)
        events = [
            event for raw in raws if (event := self._read(tp, raw)) is not None and rule.admits(event, raw)
        ]
        self.take(self._lanes[tp], events, records[-1].offset + 1)

    def _read(self, tp: TopicPartition, raw: RawRecord) -> Event | None:
        try:
            return read_event(raw)
        except UnreadableRecord as error:
            self.unreadable += 1
            logger.warning("%s/%d@%d cannot be read: %s", tp.topic, raw.partition, raw.offset, error)
            return None


async def _check_exist(consumer: AIOKafkaConsumer, tps: Sequence[TopicPartition]) -> None:
    # Asked for the offsets of a topic that is not there, the client tries again until its time is up.
    cluster = await consumer._client.fetch_all_metadata()
    for tp in tps:
        if tp.partition not in (cluster.partitions_for_topic(tp.topic) or ()):
            raise TopicMissing(tp.topic)


def _opened(client: AIOKafkaConsumer | None) -> AIOKafkaConsumer:
    if client is None:
        raise LogError("The tail is not open.")
    return client


def _place(tp: TopicPartition) -> places.TopicPartition:
    return places.TopicPartition(tp.topic, tp.partition)
