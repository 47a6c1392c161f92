"""The notifier: from `placet.executions` to the outbox, one faust agent; from there to people, one sender each.

A round is, in this order:

1. fold the records that the stream brought: what is open, and the messages that follow;
2. store them with the position of each partition, in one transaction of the outbox;
3. acknowledge the records, which lets faust commit their offsets.

It may end at any point in between: the outbox gives the position to continue from. The group's offsets are only a
bookmark, for a notifier that has lost its outbox.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from faust.types import TP

from log.errors import LogChanged
from schemas.term import NO_CLAIM
from services.processors.notifications.config import Endpoint
from services.processors.notifications.facts import Facts
from services.processors.notifications.fold import PartitionFold, changed_log
from services.processors.notifications.meters import UNSEEN, NotifierMeters
from services.processors.notifications.notice import Notice, is_asked_for
from services.processors.notifications.outbox import NOTHING, Outbox, Position
from services.processors.notifications.sender import Sender
from services.processors.trust import Source, raw_record
from services.processors.watchdog import REBALANCE, Gauge, Lease

logger = logging.getLogger(__name__)
Bookmarks = Callable[[Sequence[TP]], Awaitable[Mapping[TP, int | None]]]


class Notifier:
    """The folds of the partitions assigned to this worker, and the senders of the messages that follow."""

    def __init__(self, app: Any, source: Source, outbox: Outbox, lease: Lease) -> None:
        """Prepare it.

        Args:
            app: the faust application.
            source: the topic of the facts.
            outbox: the notifier's state.
            lease: checked before each write.
        """
        self._app = app
        self._source = source.topics.executions
        self._topic_id = source.topic_id
        self._signatures = source.signatures.of(self._source) if source.signatures else None
        self._outbox = outbox
        self._lease = lease
        self._facts = Facts(outbox)
        self._folds: dict[int, PartitionFold] = {}
        self._loaded = False
        self._ends: dict[int, int] = {}
        self._senders: tuple[Sender, ...] = ()
        self._queued: list[tuple[Endpoint, Notice]] = []
        self._now_ms: Callable[[], int] = lambda: 0
        self._meters = UNSEEN
        self.caught_up = asyncio.Event()

    def serve(self, senders: Sequence[Sender], now_ms: Callable[[], int]) -> None:
        """Set the senders of notices; messages that wait for an endpoint that no longer exists are dropped.

        Args:
            senders: one for each endpoint.
            now_ms: the clock, in ms since the epoch.
        """
        self._senders = tuple(senders)
        self._now_ms = now_ms
        known = {sender.endpoint.key for sender in senders}
        for endpoint, count in self._outbox.waiting().items():
            if endpoint not in known:
                logger.warning("%s no longer exists: %d messages for it were dropped", endpoint, count)
                self._outbox.drop_endpoint(endpoint)

    def count_with(self, meters: NotifierMeters) -> None:
        """Use meters to count notices and their outcomes."""
        self._meters = meters
        meters.expect(sender.endpoint.key for sender in self._senders)
        for sender in self._senders:
            sender.meters = meters

    async def load(self, bookmarks: Bookmarks) -> None:
        """Load the partitions of an assignment.

        Args:
            bookmarks: returns the group's offsets, None where there is none.

        Raises:
            LogChanged: the log is not the one that was read, or is shorter.
        """
        self._folds, self._loaded = {}, False
        self.caught_up.clear()
        tps = sorted(tp for tp in self._app.consumer.assignment() if tp.topic == self._source)
        ends = await self._read_ends(tps)
        known = self._outbox.positions()
        marks = await bookmarks([tp for tp in tps if tp.partition not in known])
        found = {tp.partition: known.get(tp.partition) or self._first(tp, ends, marks) for tp in tps}
        for position in found.values():
            self._check(position, ends[position.partition])
        with self._outbox.transaction():
            for position in found.values():
                self._outbox.put_position(position)
        self._ends = ends
        self._folds = {
            number: PartitionFold(position, self._facts, self._queue, self._signatures)
            for number, position in found.items()
        }
        self._loaded = True
        logger.info("continuing from %s", {number: fold.start for number, fold in self._folds.items()})
        self._look_up()

    async def fold(self, events: Sequence[Any]) -> list[Any]:
        """One round, up to step 2.

        Returns:
            The events to acknowledge, without those of an earlier assignment.
        """
        generation = self._app.consumer_generation_id
        current = [event for event in events if event.message.generation_id == generation]
        await self._check_gaps(current)
        self._lease.check()
        self._queued = []
        with self._outbox.transaction():
            touched = {self._apply(event.message) for event in current}
            for number in touched:
                self._outbox.put_position(self._folds[number].reached())
            for endpoint, notice in self._queued:
                self._outbox.put_message(endpoint.key, notice, self._now_ms())
        self._wake({endpoint.key for endpoint, _ in self._queued})
        self._look_up()
        return current

    def positions(self) -> dict[TP, int]:
        """The offset to read next, by partition of the facts."""
        return {TP(self._source, number): fold.position for number, fold in self._folds.items()}

    async def gauges(self) -> dict[str, Gauge]:
        """The watchdog's gauges: each partition, or the rebalance during one, and each sender."""
        if not self._loaded or self._app.rebalancing:
            return {REBALANCE: Gauge(position=0, behind=1)}
        self._meters.waiting(self._outbox.waiting(), [sender.endpoint.key for sender in self._senders])
        folds = dict(self._folds)
        ends = await self._read_ends([TP(self._source, number) for number in folds])
        for number, fold in folds.items():
            _check_end(number, fold.position - 1, ends[number])
        found = {
            f"partition {number}": Gauge(fold.position, ends[number] - fold.position)
            for number, fold in folds.items()
        }
        if self.caught_up.is_set():
            found |= {
                f"the sender of {sender.endpoint.key}": Gauge(sender.turns, int(sender.is_late))
                for sender in self._senders
            }
        return found

    def _first(self, tp: TP, ends: Mapping[int, int], marks: Mapping[TP, int | None]) -> Position:
        """The position of a partition that was never read: from its first record, but reporting only what is new.

        The records that count, and the open calls and holds, can only be known from the beginning.
        """
        mark = marks.get(tp)
        end = ends[tp.partition]
        quiet = end if mark is None else min(mark, end)
        return Position(tp.partition, self._topic_id, NOTHING, "", NO_CLAIM, quiet - 1)

    def _check(self, position: Position, end: int) -> None:
        if position.topic_id != self._topic_id:
            raise changed_log(f"partition {position.partition} was read on topic {position.topic_id}")
        _check_end(position.partition, position.through_offset, end)

    def _queue(self, notice: Notice) -> None:
        self._queued += [
            (sender.endpoint, notice)
            for sender in self._senders
            if is_asked_for(sender.endpoint.when, notice)
        ]

    def _apply(self, message: Any) -> int:
        self._folds[message.partition].apply(raw_record(message))
        return int(message.partition)

    def _look_up(self) -> None:
        """Check if everything that was in the log at the start has been read."""
        if self.caught_up.is_set():
            return
        if all(fold.position >= self._ends[number] for number, fold in self._folds.items()):
            self.caught_up.set()
            self._wake({sender.endpoint.key for sender in self._senders})

    def _wake(self, endpoints: set[str]) -> None:
        for sender in self._senders:
            if sender.endpoint.key in endpoints:
                sender.woken.set()

    async def _read_ends(self, tps: Sequence[TP]) -> dict[int, int]:
        ends = await self._app.consumer.highwaters(*tps) if tps else {}
        return {tp.partition: int(end or 0) for tp, end in ends.items()}

    async def _check_gaps(self, events: Sequence[Any]) -> None:
        """Check offsets without a record: a foreign transaction leaves such gaps, but so do deleted records."""
        expected = {number: fold.position for number, fold in self._folds.items()}
        for message in [event.message for event in events]:
            missing = expected[message.partition]
            if message.offset > missing:
                tp = TP(self._source, message.partition)
                first = (await self._app.consumer.earliest_offsets(tp))[tp]
                if first > missing:
                    raise changed_log(f"partition {message.partition} now begins at offset {first}")
            expected[message.partition] = max(missing, message.offset + 1)


def _check_end(partition: int, through: int, end: int) -> None:
    if end <= through:
        raise LogChanged(
            f"Partition {partition}",
            f"ends at offset {end}, but was read through {through}",
            "the log is shorter. Restore it from a backup; only if the log is intended as it is now, move the "
            "notifier's outbox away: the messages waiting in it are then not sent",
        )
