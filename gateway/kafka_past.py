"""Reads the log from earlier places on, for clients that come back: apart from the tail, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError, TopicAuthorizationFailedError

from gateway.live.past import PastGone
from log.errors import LogRefused
from log.kafka.client import KafkaSettings, start, stop
from schemas.record import RawRecord, raw_record

POLL_MS = 200
# What is read ahead of a slow client is thrown away when another one has its turn.
FETCH_BYTES = 256 * 1024

Chunk = tuple[int, list[RawRecord]]


class KafkaForbidden(LogRefused):
    """The cluster does not let this principal read the topic."""


@dataclass(slots=True)
class KafkaPast:
    """The past of some lanes. Each reading has a consumer of its own, kept for the next one."""

    config: KafkaSettings
    lanes: Sequence[TopicPartition]
    _idle: list[AIOKafkaConsumer] = field(default_factory=list)

    async def bounds(self, lanes: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Per lane, the first offset that is there and the one after the last.

        Raises:
            LogError: nobody says so.
        """
        tps = [self.lanes[lane] for lane in lanes]
        consumer = await self._taken()
        try:
            first = await consumer.beginning_offsets(tps)
            end = await consumer.end_offsets(tps)
        except (KafkaError, OSError, TimeoutError) as error:
            await stop(consumer)
            raise self.config.translate(error) from error
        self._idle.append(consumer)
        return {lane: (first[tp], end[tp]) for lane, tp in zip(lanes, tps, strict=True)}

    async def read(self, places: Mapping[int, int]) -> AsyncGenerator[Chunk]:
        """Records of lanes from offsets on, in the order of each lane, until the reader closes.

        Raises:
            KafkaForbidden: this principal may not read them.
            LogError: they do not come.
            PastGone: they were deleted.
        """
        consumer = await self._taken()
        numbers = {self.lanes[lane]: lane for lane in places}
        try:
            # No await in between: a partition that is assigned without a position asks for a committed one.
            consumer.assign(list(numbers))
            for tp, lane in numbers.items():
                consumer.seek(tp, places[lane])
            while True:
                polled = await consumer.getmany(timeout_ms=POLL_MS)
                for tp, records in polled.items():
                    yield numbers[tp], [raw_record(record) for record in records]
        except OffsetOutOfRangeError as error:
            await stop(consumer)
            raise PastGone(str(error)) from error
        except TopicAuthorizationFailedError as error:
            await stop(consumer)
            raise KafkaForbidden(self.config.bootstrap_servers, str(error)) from error
        except (KafkaError, OSError, TimeoutError) as error:
            told = self.config.translate(error, consumer=consumer)
            await stop(consumer)
            raise told from error
        except (GeneratorExit, asyncio.CancelledError):
            consumer.assign([])
            self._idle.append(consumer)
            raise

    async def close(self) -> None:
        """Let go of the connections."""
        while self._idle:
            await stop(self._idle.pop())

    async def _taken(self) -> AIOKafkaConsumer:
        if self._idle:
            return self._idle.pop()
        consumer = self.config.reader(FETCH_BYTES)
        await start(consumer, self.config)
        return consumer
