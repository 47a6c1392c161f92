"""The gateway's tail of the log: one follower for each process, each record decoded once."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from log.errors import FactsDeleted, LogChanged, LogError, TopicMissing
from log.kafka.client import KafkaSettings
from log.kafka.follower import TAIL, Follower
from log.places import TopicPartition
from schemas.event_signatures import LogSignatures
from schemas.headers import read_event
from schemas.record import Event, RawRecord, UnreadableRecord
from schemas.term import NO_CLAIM, TermRule, rule_of

logger = logging.getLogger(__name__)

POLL_MS = 1_000

Take = Callable[[int, Sequence[Event], int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a lane: the first offset wanted and the claim in force there."""

    topic: str
    partition: int
    offset: int = 0
    claim: int = NO_CLAIM

    @property
    def tp(self) -> TopicPartition:
        """Its partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(slots=True)
class KafkaTail:
    """Reads lanes of events from given starts on, and passes each batch of events that count to `take`.

    `unreadable` counts records that could not be read; the decider reports them. `signatures` verifies which records
    a decider signed; None if records are not signed.
    """

    config: KafkaSettings
    starts: Sequence[Start]
    take: Take
    signatures: LogSignatures | None = None
    unreadable: int = 0
    _follower: Follower | None = field(default=None, init=False)
    _scout: Follower | None = field(default=None, init=False)
    _rules: dict[TopicPartition, TermRule] = field(default_factory=dict, init=False)
    _lanes: dict[TopicPartition, int] = field(default_factory=dict, init=False)

    async def open(self) -> None:
        """Connect, check that every start is within the log, and move there.

        Raises:
            LogUnreachable: Kafka does not answer.
            TopicMissing: a topic is missing.
            FactsDeleted: its first events were deleted.
            LogChanged: the log is shorter than the position of a view.
        """
        self._follower = follower = Follower(self.config, TAIL)
        # It only queries the end of the log: on the follower's connection the query would wait behind a long fetch.
        self._scout = scout = Follower(self.config)
        await follower.open()
        await scout.open()
        await self._check(scout)
        follower.stand_at({begin.tp: begin.offset for begin in self.starts})
        for lane, begin in enumerate(self.starts):
            self._lanes[begin.tp] = lane
            self._rules[begin.tp] = rule_of(self.signatures, begin.topic, begin.claim)

    def rule_at(self, lane: int, claim: int) -> TermRule:
        """Return the term rule of a lane, with a given claim in force."""
        return rule_of(self.signatures, self.starts[lane].topic, claim)

    def claims(self) -> list[int]:
        """Return, per lane, the claim in force at this tail's position; empty before it was opened."""
        return [self._rules[begin.tp].claim for begin in self.starts if begin.tp in self._rules]

    async def close(self) -> None:
        """Close the connections."""
        followers = (self._follower, self._scout)
        self._follower = self._scout = None
        for follower in followers:
            if follower is not None:
                await follower.close()

    async def run(self) -> None:
        """Read until cancelled; if a broker is unreachable, wait for it.

        Raises:
            LogChanged: records that were not yet read were deleted.
            LogDamaged: one is not as it was written.
        """
        follower = _opened(self._follower)
        while True:
            for tp, records in await follower.poll_on(POLL_MS):
                await self._take(tp, records)

    async def end_offsets(self) -> list[int]:
        """Return, per lane, the present high watermark.

        Raises:
            LogUnreachable: it could not be read.
        """
        tps = [begin.tp for begin in self.starts]
        ends = await _opened(self._scout).ends(tps)
        return [ends[tp] for tp in tps]

    @property
    def forged(self) -> int:
        """The number of records in the term in force that no decider signed; they do not count."""
        return sum(rule.signatures.forged for rule in self._rules.values() if rule.signatures)

    def lag(self, read_through: Sequence[int]) -> int:
        """Return the number of records that the broker is known to have and that were not read yet."""
        if self._follower is None:
            return 0
        return self._follower.unread(zip((begin.tp for begin in self.starts), read_through, strict=True))

    def progress(self) -> tuple[int, int]:
        """Return its position as a sum of offsets, and the number of records the broker is known to have after it."""
        return (0, 0) if self._follower is None else self._follower.progress()

    async def _check(self, scout: Follower) -> None:
        # If the topic does not exist, the client would retry a query for its offsets until its timeout.
        for topic in dict.fromkeys(begin.topic for begin in self.starts):
            there = await scout.partitions(topic)
            if any(begin.topic == topic and begin.tp not in there for begin in self.starts):
                raise TopicMissing(topic)
        held = await scout.bounds([begin.tp for begin in self.starts])
        for begin in self.starts:
            first, end = held[begin.tp]
            if first != 0:
                raise FactsDeleted(begin.tp, first, end)
            if begin.offset > end:
                what = f"ends at offset {end}, but the views are at {begin.offset}"
                raise LogChanged(begin.tp, what)

    async def _take(self, tp: TopicPartition, records: Sequence[RawRecord]) -> None:
        rule = self._rules[tp]
        events = [
            event for raw in records if (event := self._read(tp, raw)) is not None and rule.admits(event, raw)
        ]
        await self.take(self._lanes[tp], events, records[-1].offset + 1)

    def _read(self, tp: TopicPartition, raw: RawRecord) -> Event | None:
        try:
            return read_event(raw)
        except UnreadableRecord as error:
            self.unreadable += 1
            logger.warning("%s@%d cannot be read: %s", tp, raw.offset, error)
            return None


def _opened(follower: Follower | None) -> Follower:
    if follower is None:
        raise LogError("The tail is not open.")
    return follower
