"""The trust processor: from `placet.executions` to `placet.trust`, one faust agent.

A round is, in this order:

1. fold the records that the stream brought, by partition;
2. write the parts that changed, and wait until every replica has them;
3. write the checkpoint of each partition, and wait likewise;
4. acknowledge the records, which lets faust commit their offsets.

It may end at any point in between: the checkpoint gives the position to continue from, and each part says what it has
counted. The group's offsets are only a bookmark for people: faust acknowledges some records that it drops.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from faust.types import TP

from log.errors import LogChanged, LogFailing
from log.kafka.damage import failure, is_failure
from schemas.event_signatures import LogSignatures
from schemas.ids import LOG_KEYS
from schemas.record import Headers, RawRecord, UnreadableRecord
from schemas.topics import Topics
from schemas.trust import COUNT_FORM, TrustCheckpoint, TrustRecord, checkpoint_key, decode, trust_record
from services.processors.errors import PartsNotWhole
from services.processors.fold import PartitionFold, changed_log, group_by_partition, is_unused
from services.processors.meters import UNSEEN, Weighed
from services.processors.record_filter import RecordFilter
from services.processors.watchdog import REBALANCE, Gauge, Lease

logger = logging.getLogger(__name__)


class Source(NamedTuple):
    """The topics, the id of the facts' topic, and the signatures that verify which facts a decider signed."""

    topics: Topics
    topic_id: str
    signatures: LogSignatures | None = None


class TrustProcessor:
    """The folds of the partitions assigned to this worker, with their input and output through faust."""

    def __init__(self, app: Any, source: Source, table: Any, lease: Lease) -> None:
        """Prepare it.

        Args:
            app: the faust application.
            source: the topic of the facts.
            table: faust's copy of `placet.trust`, as read by the recovery.
            lease: checked before each write.
        """
        self._app = app
        self._source = source.topics.executions
        self._target = source.topics.trust
        self._topic_id = source.topic_id
        self._signatures = source.signatures.of(self._source, reads_all=False) if source.signatures else None
        self._table = table
        self._lease = lease
        self._folds: dict[int, PartitionFold] = {}
        self._loaded = False
        self.meters = UNSEEN
        self.record_filter = RecordFilter(is_unused, self._whole_through)

    async def load(self) -> None:
        """Load the partitions of an assignment; faust calls this when the table is recovered."""
        try:
            await self._load()
        except Exception as error:  # faust ignores exceptions of this callback
            await self._app.crash(error)

    async def fold(self, events: Sequence[Any]) -> list[Any]:
        """One round, up to step 3.

        Returns:
            The events to acknowledge, without those of an earlier assignment.
        """
        generation = self._app.consumer_generation_id
        current = [event for event in events if event.message.generation_id == generation]
        try:
            folds = {fold.partition: fold for fold in [await self._apply(event) for event in current]}
        except PartsNotWhole as error:
            await self._drop_checkpoint(error.partition)
            raise
        parts = [part for fold in folds.values() for part in fold.take_changes()]
        await self._write(parts)
        closing = [fold.checkpoint() for fold in folds.values()]
        await self._write(checkpoint for checkpoint in closing if checkpoint is not None)
        self.meters.counted(
            len(current), len(parts), _together(fold.take_weighed() for fold in folds.values())
        )
        return current

    def drop_unused(self, tp: TP, records: list[Any]) -> list[Any]:
        """The records of a fetch that faust gets."""
        return self.record_filter.drop_unused(tp.partition, records) if tp.topic == self._source else records

    def positions(self) -> dict[TP, int]:
        """The offset to read next, by partition of the facts."""
        return {TP(self._source, partition): fold.position for partition, fold in self._folds.items()}

    async def gauges(self) -> dict[str, Gauge]:
        """The watchdog's gauges: each partition, or the recovery during one."""
        if not self._loaded or self._app.rebalancing or self._app.in_recovery:
            remaining = self._app.tables.recovery.active_remaining_total()
            return {REBALANCE: Gauge(position=-remaining, behind=1)}
        folds = dict(self._folds)
        ends = await self._read_ends(folds)
        positions = {partition: folds[partition].position for partition in ends}
        _check_ends({partition: position - 1 for partition, position in positions.items()}, ends)
        return {
            f"partition {partition}": Gauge(position, ends[partition] - position)
            for partition, position in positions.items()
        }

    async def _load(self) -> None:
        assigned = sorted(tp.partition for tp in self._app.consumer.assignment() if tp.topic == self._source)
        checkpoints, parts = group_by_partition(self._stored())
        ends = await self._read_ends(assigned)
        self._check_log({number: one for number, one in checkpoints.items() if number in ends}, ends)
        await self._drop_earlier_forms(assigned, checkpoints)
        folds = {
            number: PartitionFold(
                number, self._topic_id, checkpoints.get(number), parts.get(number, ()), self._signatures
            )
            for number in assigned
        }
        counted = {number: fold.needs_through for number, fold in folds.items()}
        _check_ends(counted, ends)
        self._folds = folds
        self.record_filter.forget()
        self._loaded = True
        logger.info("continuing from %s", {number: fold.start for number, fold in folds.items()})

    def _check_log(self, checkpoints: Mapping[int, TrustCheckpoint], ends: Mapping[int, int]) -> None:
        """Check that the log is the one that was counted, in any form, before anything counted is dropped."""
        for number, checkpoint in checkpoints.items():
            if checkpoint.topic_id != self._topic_id:
                raise changed_log(f"partition {number} was counted on topic {checkpoint.topic_id}")
        _check_ends({number: one.through_offset for number, one in checkpoints.items()}, ends)

    async def _drop_earlier_forms(
        self, assigned: Sequence[int], checkpoints: dict[int, TrustCheckpoint]
    ) -> None:
        """Begin anew with the partitions that an earlier version counted in another form."""
        for number in assigned:
            if number in checkpoints and checkpoints[number].form != COUNT_FORM:
                logger.info("partition %d was counted by an earlier version: it is counted again", number)
                await self._drop_checkpoint(number)
                del checkpoints[number]

    def _stored(self) -> Iterable[TrustRecord]:
        for key, value in self._table.items():
            try:
                yield decode(value)
            except UnreadableRecord as error:
                logger.warning("skipped a record of the trust topic under %r: %s", key, error)

    async def _read_ends(self, partitions: Iterable[int]) -> dict[int, int]:
        tps = [TP(self._source, partition) for partition in partitions]
        ends = await self._app.consumer.highwaters(*tps) if tps else {}
        return {tp.partition: int(end or 0) for tp, end in ends.items()}

    async def _apply(self, event: Any) -> PartitionFold:
        message = event.message
        fold = self._folds[message.partition]
        first = self.record_filter.first_of(message.partition, message.offset)
        if first > fold.position:
            await self._explain_gap(message.partition, fold.position)
        fold.apply(raw_record(message), first)
        return fold

    def _whole_through(self, partition: int) -> int | None:
        fold = self._folds.get(partition)
        return None if fold is None else fold.needs_through

    async def _explain_gap(self, partition: int, missing: int) -> None:
        """Check offsets without a record: a foreign transaction leaves such gaps, but so do deleted records."""
        tp = TP(self._source, partition)
        first = (await self._app.consumer.earliest_offsets(tp))[tp]
        if first > missing:
            raise LogChanged(
                f"Partition {partition}",
                f"begins at offset {first}, but its record {missing} was not counted yet",
                "records were deleted; restore them from a backup, since nothing can be counted without them",
            )

    async def _write(self, records: Iterable[TrustRecord]) -> None:
        self._lease.check()
        outs = [(record.partition, trust_record(record)) for record in records]
        with self._telling_failures():
            await asyncio.gather(*[await self._send(to, out.key, out.value, out.headers) for to, out in outs])

    @contextmanager
    def _telling_failures(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if is_failure(error):
                raise LogFailing(self._target, failure(self._target, error)) from error
            raise

    async def _drop_checkpoint(self, partition: int) -> None:
        """Drop what was counted of a partition: first the checkpoint, so that no reader believes part of the rest."""
        self._lease.check()
        parts = [key for key, value in self._table.items() if _is_part_of(key, value, partition)]
        with self._telling_failures():
            await (await self._send(partition, checkpoint_key(partition), None, ()))
            await asyncio.gather(*[await self._send(partition, key, None, ()) for key in parts])

    async def _send(
        self, partition: int, key: bytes, value: bytes | None, headers: Headers
    ) -> Awaitable[Any]:
        """Pass a record to the producer; the returned future ends when every replica has it."""
        sent: Awaitable[Any] = await self._app.producer.send(
            self._target, key, value, partition=partition, timestamp=None, headers=list(headers)
        )
        return sent


def _together(found: Iterable[Weighed]) -> Weighed:
    total = Weighed(Counter(), Counter())
    for one in found:
        total.verdicts.update(one.verdicts)
        total.samples.update(one.samples)
    return total


def _is_part_of(key: bytes, value: bytes, partition: int) -> bool:
    return bool(value) and not key.startswith(LOG_KEYS) and key.endswith(b"/%d" % partition)


def raw_record(message: Any) -> RawRecord:
    """A faust message in the form of the log's readers; a missing key or value is empty."""
    return RawRecord(
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=round(message.timestamp * 1000),
        key=message.key or b"",
        value=message.value or b"",
        headers=tuple(message.headers or ()),
    )


def _check_ends(counted: Mapping[int, int], ends: Mapping[int, int]) -> None:
    for partition, through in counted.items():
        if ends[partition] <= through:
            raise LogChanged(
                f"Partition {partition}",
                f"ends at offset {ends[partition]}, but trust was counted through {through}",
                "the log is shorter. Restore it from a backup, and leave the trust topic as it is: it shows deciders "
                "what is missing, which they would otherwise decide again",
            )
