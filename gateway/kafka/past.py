"""Reads the log from earlier offsets, for clients that catch up: independently of the tail, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.live.past import PastGone
from log.errors import LogError, OffsetGone
from log.kafka.client import KafkaSettings
from log.kafka.follower import Fetch, Follower
from log.places import Bounds, TopicPartition
from schemas.record import RawRecord

POLL_MS = 200
# What was read ahead for a slow client is dropped when another one gets its turn.
FETCH = Fetch(size=256 * 1024)

Chunk = tuple[int, list[RawRecord]]


@dataclass(slots=True)
class KafkaPast:
    """The past of some lanes. Each read has a follower of its own, which is kept for the next one."""

    config: KafkaSettings
    lanes: Sequence[TopicPartition]
    _idle: list[Follower] = field(default_factory=list)

    async def bounds(self, lanes: Sequence[int]) -> dict[int, Bounds]:
        """Return, per lane, the available offsets.

        Raises:
            LogError: Kafka does not answer.
        """
        follower = await self._taken()
        try:
            held = await follower.bounds([self.lanes[lane] for lane in lanes])
        except BaseException:
            # Also if cancelled: the next caller would get the answer to this request.
            await follower.close()
            raise
        self._idle.append(follower)
        return {lane: held[self.lanes[lane]] for lane in lanes}

    async def read(self, places: Mapping[int, int]) -> AsyncGenerator[Chunk]:
        """Yield records of lanes from offsets on, in the order of each lane, until the reader closes.

        Raises:
            TopicForbidden: this principal may not read them.
            LogError: they do not arrive.
            PastGone: they were deleted.
        """
        follower = await self._taken()
        numbers = {self.lanes[lane]: lane for lane in places}
        try:
            follower.stand_at({tp: places[lane] for tp, lane in numbers.items()})
            while True:
                for tp, records in await follower.poll(POLL_MS):
                    yield numbers[tp], records
        except OffsetGone as error:
            await follower.close()
            raise PastGone(str(error)) from error
        except LogError:
            await follower.close()
            raise
        except (GeneratorExit, asyncio.CancelledError):
            follower.stand_at({})
            self._idle.append(follower)
            raise

    async def close(self) -> None:
        """Close the connections."""
        while self._idle:
            await self._idle.pop().close()

    async def _taken(self) -> Follower:
        if self._idle:
            return self._idle.pop()
        follower = Follower(self.config, FETCH)
        await follower.open()
        return follower
