"""One run of reading the events topic: from a position until the connection fails, or to the log's end.

In this order:
1. the partitions are found, and the position is compared with their bounds;
2. from `latest`, everything before the present ends is read for the claims in force there, and nothing of it is
   delivered: without them it is unknown which of the next records count;
3. from a cursor, each partition is read from the cursor's own record on, whose id must be the cursor's;
4. records are read and delivered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from placet.config import NotConfigured
from placet.consuming.events import LogEvent, Reached, Wanted
from placet.consuming.place import NOWHERE, Place, place_text, read_place
from placet.consuming.records import Reader, Record
from placet.consuming.source import EARLIEST, LATEST
from placet.errors import CheckpointRefused

_log = logging.getLogger(__name__)
POLL_MS = 500
POLL_RECORDS = 500
ASK_S = 30.0
CLOSE_S = 2.0
# A consumer of aiokafka says nothing about brokers that are away: after this long without a record they are asked.
QUIET_S = 20.0
OTHER_LOG = "the position is of another log: the record that it names is not there"


class KafkaRun:
    """Reads every partition of a topic with one consumer."""

    def __init__(self, consumer: AIOKafkaConsumer, topic: str, reader: Reader, wanted: Wanted) -> None:
        self._consumer, self._topic = consumer, topic
        self._reader, self._wanted = reader, wanted
        self._ends: dict[TopicPartition, int] = {}
        # Of each partition that was not read yet: the record that the cursor names.
        self._expected: dict[int, Place] = {}
        self._news: list[Reached] = []
        self._clock = asyncio.get_running_loop().time
        self._heard_at_s = self._clock()

    async def open(self, start: str) -> None:
        """Connect, and stand at a position.

        Raises:
            NotConfigured: there is no such topic.
            CheckpointRefused: the position is not one of this log.
            KafkaError: Kafka does not answer, or refuses.
        """
        async with asyncio.timeout(ASK_S):
            await self._consumer.start()
            # What its public methods know is only about topics that it already reads; pinned to aiokafka 0.14.
            cluster = await self._consumer._client.fetch_all_metadata()
            tps = [TopicPartition(self._topic, n) for n in cluster.partitions_for_topic(self._topic) or ()]
            if not tps:
                raise NotConfigured(f"Kafka has no topic {self._topic} that may be read here")
            firsts = await self._consumer.beginning_offsets(tps)
            self._ends = await self._consumer.end_offsets(tps)
        numbers = {tp.partition for tp in tps}
        is_cursor = start not in (EARLIEST, LATEST)
        places = read_place(start, self._topic, numbers) if is_cursor else dict.fromkeys(numbers, Place())
        for tp in tps:
            _check_bounds(places[tp.partition], firsts[tp], self._ends[tp])
        self._reader.places = places
        self._expected = {number: place for number, place in places.items() if place.offset != NOWHERE}
        # No await in between: aiokafka would look for a committed position of an assigned partition without one.
        self._consumer.assign(tps)
        for tp in tps:
            self._consumer.seek(tp, max(places[tp.partition].offset, 0))
        if start == LATEST:
            await self._pass_all()
            self._news.append(Reached(self._cursor()))

    async def poll(self) -> Sequence[Reached]:
        """The next events, with the position after each; waits a little for them, and can return none.

        Raises:
            CheckpointRefused: the log has another record where the position was.
            KafkaError: Kafka refuses, or does not answer.
        """
        if self._news:
            # Before anything that can fail: without a position that the caller knows, `latest` would be a later one.
            news, self._news = self._news, []
            return news
        news = []
        polled = await self._polled()
        for tp, records in polled.items():
            for raw in records:
                event = await self._take(_record(tp, raw))
                if event is not None and self._wanted.fits(event):
                    cursor = self._cursor()
                    news.append(Reached(cursor, replace(event, cursor=cursor)))
        if polled:
            news.append(Reached(self._cursor()))
        return news

    async def is_over(self) -> bool:
        """Returns True once everything was read that the log had when it was opened."""
        return not self._news and not await self._unread()

    async def close(self) -> None:
        """Close the connection within seconds."""
        # A task of its own: aiokafka can end its stop with the cancellation of one of its own tasks.
        stopping = asyncio.ensure_future(self._consumer.stop())
        done, _ = await asyncio.wait((stopping,), timeout=CLOSE_S)
        if not done:
            stopping.cancel()
        elif not stopping.cancelled() and (error := stopping.exception()) is not None:
            _log.debug("a Kafka consumer did not stop by itself: %r", error)
        await self._consumer._client.close()

    def _cursor(self) -> str:
        return place_text(self._topic, self._reader.places)

    async def _unread(self) -> list[TopicPartition]:
        return [tp for tp, end in self._ends.items() if await self._consumer.position(tp) < end]

    async def _polled(self) -> dict[TopicPartition, list[Any]]:
        polled: dict[TopicPartition, list[Any]] = await self._consumer.getmany(
            timeout_ms=POLL_MS, max_records=POLL_RECORDS
        )
        if polled:
            self._heard_at_s = self._clock()
        elif self._clock() - self._heard_at_s >= QUIET_S:
            async with asyncio.timeout(ASK_S):
                await self._consumer.end_offsets(list(self._ends))
            self._heard_at_s = self._clock()
        return polled

    async def _take(self, record: Record, *, is_passed: bool = False) -> LogEvent | None:
        expected = self._expected.pop(record.partition, None)
        if expected is None:
            return await self._reader.read(record, is_passed=is_passed)
        ids = [value.decode(errors="replace") for name, value in record.headers if name == "ce_id"]
        if record.offset != expected.offset or (ids or [""])[-1] != expected.record_id:
            raise CheckpointRefused("other_log", OTHER_LOG)
        return None

    async def _pass_all(self) -> None:
        """Read up to the present ends, and stand there."""
        while unread := await self._unread():
            done = [tp for tp in self._ends if tp not in unread]
            self._consumer.pause(*done)
            for tp, records in (await self._polled()).items():
                for raw in records:
                    if raw.offset < self._ends[tp]:
                        await self._take(_record(tp, raw), is_passed=True)
                if records[-1].offset >= self._ends[tp]:
                    self._consumer.seek(tp, self._ends[tp])
        self._consumer.resume(*self._consumer.paused())


def _check_bounds(place: Place, first: int, end: int) -> None:
    if place.offset == NOWHERE:
        if first != 0:
            raise CheckpointRefused(
                "gone", f"the log begins with offset {first}: its first events were deleted"
            )
    elif not place.offset < end:
        raise CheckpointRefused("other_log", OTHER_LOG)
    elif place.offset < first:
        raise CheckpointRefused("gone", "the log no longer has what follows the position")


def _record(tp: TopicPartition, raw: Any) -> Record:
    headers = [(name, value or b"") for name, value in raw.headers]
    return Record(tp.partition, raw.offset, raw.key or b"", headers, raw.value or b"")
