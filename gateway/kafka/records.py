"""Reads single records back from the log, byte for byte, for audit proofs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from log.errors import LogDamaged, LogError, OffsetGone
from log.kafka.client import KafkaSettings
from log.kafka.follower import Fetch, Follower
from log.places import TopicPartition
from schemas.record import RawRecord

POLL_MS = 200
READ_TIMEOUT_S = 10.0
# Small: the records after a wanted one are read, decoded and dropped.
FETCH = Fetch(size=64 * 1024)


@dataclass(slots=True)
class RecordReader:
    """One follower, opened when it is first needed; one read at a time."""

    config: KafkaSettings
    _follower: Follower | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, tp: TopicPartition, offsets: Sequence[int]) -> dict[int, RawRecord]:
        """Return the records at offsets of one partition; all between the first and the last are read as well.

        Args:
            tp: the partition.
            offsets: in ascending order; at least one.

        Raises:
            OffsetGone: the log does not have one of them.
            LogDamaged: one is not as it was written.
            LogError: they did not arrive in time.
        """
        async with self._turn:
            try:
                async with asyncio.timeout(READ_TIMEOUT_S):
                    return await self._read(tp, offsets)
            except (OffsetGone, LogDamaged):
                raise
            except LogError:
                await self._drop()
                raise
            except TimeoutError as error:
                await self._drop()
                raise self.config.translate(error) from error

    async def close(self) -> None:
        """Close the connection."""
        async with self._turn:
            await self._drop()

    async def _read(self, tp: TopicPartition, offsets: Sequence[int]) -> dict[int, RawRecord]:
        if self._follower is None:
            follower = Follower(self.config, FETCH)
            await follower.open()
            self._follower = follower
        follower = self._follower
        follower.stand_at({tp: offsets[0]})
        wanted, found = set(offsets), dict[int, RawRecord]()
        try:
            while await follower.position(tp) <= offsets[-1]:
                for _, records in await follower.poll(POLL_MS):
                    found.update((one.offset, one) for one in records if one.offset in wanted)
        finally:
            follower.stand_at({})
        if missing := wanted - found.keys():
            raise OffsetGone(tp, min(missing))
        return found

    async def _drop(self) -> None:
        if self._follower is not None:
            await self._follower.close()
            self._follower = None
