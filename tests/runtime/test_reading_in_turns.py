"""A partition that was fetched already is folded in turns with everything else that the loop has to do."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from typing import cast

from log.places import TopicPartition
from log.port import Log
from schemas.record import RawRecord
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.runtime.claim import READ_TOGETHER, read_up_to
from services.runtime.executions_partition import ExecutionsPartition
from services.runtime.ledger import Ledger

RECORDS = 20 * READ_TOGETHER


class Fetched:
    """A log whose records have come: no read of them waits for anything."""

    async def read(
        self, tp: TopicPartition, start: int, stop: int
    ) -> AsyncGenerator[Sequence[RawRecord], None]:
        yield [RawRecord(tp.partition, offset, 0, b"key", b"", ()) for offset in range(start, stop)]


async def test_read_up_to_lets_the_heartbeat_have_its_turn() -> None:
    rules = Definitions(policies=PolicySet())
    ledger = Ledger(ExecutionsPartition(lambda: rules))
    seen: list[int] = []

    async def heartbeat() -> None:
        while True:
            seen.append(ledger.next_offset)
            await asyncio.sleep(0)

    beating = asyncio.create_task(heartbeat())
    await read_up_to(cast(Log, Fetched()), TopicPartition("events", 0), ledger, RECORDS)
    beating.cancel()

    assert ledger.unreadable == RECORDS
    assert max(after - before for before, after in itertools.pairwise(seen)) <= READ_TOGETHER
