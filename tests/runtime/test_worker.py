"""What a worker does with the partitions that its group gives and takes."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from log.memory.log import MemoryLog
from log.places import TopicPartition
from schemas import commands as k
from schemas.record import OutRecord, RawRecord
from schemas.topics import Topics
from services.runtime import worker
from services.runtime.assembly import RECOVERED_TOGETHER
from services.runtime.claim import READ_TOGETHER
from services.runtime.ledger import Ledger
from services.runtime.rounds import Round
from services.runtime.worker import Worker
from services.runtime.writer import Deposed, PartitionWriter
from tests.runtime.lab import Lab

START_MS = 1_780_000_000_000
PARTITIONS = 8


def memory_lab(seed: int, partitions: int) -> Lab:
    return Lab(MemoryLog(Topics(), partitions, lambda: START_MS), partitions, random.Random(seed))


async def test_worker_whose_partitions_are_taken_away_ends_all_of_them_at_the_same_time(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may take its four seconds: whoever gets the last one must not wait for all of them."""
    lab, finish, stuck = memory_lab(seed, PARTITIONS), PartitionWriter._finish, list[TopicPartition]()

    async def never_ends(self: PartitionWriter, round_: Round) -> None:
        if round_.commands:
            stuck.append(self.commands_tp)
            await asyncio.Event().wait()
        await finish(self, round_)

    monkeypatch.setattr(PartitionWriter, "_finish", never_ends)
    try:
        first = await lab.start_worker("one")
        for partition in range(PARTITIONS):
            await lab.send(lab.execution_on(partition), k.StartExecution(agent="bot"))
        async with asyncio.timeout(20):
            while len(stuck) < PARTITIONS:
                await asyncio.sleep(0.01)
            slots = list(first.worker._slots.values())
            await lab.start_worker("two")
            while not any(slot.stopping for slot in slots):
                await asyncio.sleep(0.01)

        leaving = [slot for slot in slots if slot.tp in stuck and slot.tp not in first.worker._slots]
        assert len(leaving) > 1
        assert all(slot.writer is not None and slot.writer.stopping for slot in leaving)
        assert not any(slot.task is None or slot.task.done() for slot in leaving)
    finally:
        monkeypatch.setattr(worker, "BACKOFF_MAX_S", 0.01)
        await lab.close()


async def test_worker_that_is_deposed_again_and_again_waits_longer_each_time(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or two that both believe to own a partition would depose each other at every turn."""
    lab, enough = memory_lab(seed, 1), asyncio.Event()

    async def deposed(self: PartitionWriter) -> None:
        raise Deposed("another one claimed it")

    async def back_off(self: Worker, failures: int) -> None:
        if failures == 3:
            enough.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(PartitionWriter, "_serve", deposed)
    monkeypatch.setattr(PartitionWriter, "_wait", lambda self: asyncio.sleep(0))
    monkeypatch.setattr(Worker, "_back_off", back_off)
    monkeypatch.setattr(worker, "BACKOFF_MAX_S", 0.01)
    try:
        await lab.start_worker("one")
        async with asyncio.timeout(20):
            await enough.wait()
    finally:
        await lab.close()


async def test_worker_that_reads_a_long_partition_says_how_much_of_it_is_left(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who starts a stack waits for it while it gets on."""
    lab, read_all, left = memory_lab(seed, 1), Ledger.read_all, list[int]()
    for _ in range(3 * READ_TOGETHER):
        await lab.log.send(TopicPartition(lab.log.topics.executions, 0), OutRecord(b"k", b"v", ()))

    async def watched(self: Ledger, raws: Sequence[RawRecord]) -> None:
        left.append(one.worker.progress()[1])
        await read_all(self, raws)

    monkeypatch.setattr(Ledger, "read_all", watched)
    try:
        one = await lab.start_worker("one")
        async with asyncio.timeout(20):
            while not one.worker.settled:
                await asyncio.sleep(0.01)
        # The definitions are read beside it.
        assert {3 * READ_TOGETHER, 2 * READ_TOGETHER, READ_TOGETHER} <= set(left)
        assert one.worker.progress()[1] == 0
    finally:
        await lab.close()


async def test_worker_recovers_few_partitions_at_once_so_that_the_first_serves_before_the_last_begins(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, recover = memory_lab(seed, PARTITIONS), PartitionWriter._recover
    under_way, most, serving_then = set[TopicPartition](), 0, list[int]()

    async def watched(self: PartitionWriter) -> None:
        nonlocal most
        if self.commands_tp.topic == lab.log.topics.commands:
            under_way.add(self.commands_tp)
            most = max(most, len(under_way))
            serving_then.append(len(one.worker.writing))
        await recover(self)
        # The others get their turn meanwhile, as they do where the log is long.
        for _ in range(20):
            await asyncio.sleep(0)
        under_way.discard(self.commands_tp)

    monkeypatch.setattr(PartitionWriter, "_recover", watched)
    try:
        one = await lab.start_worker("one")
        async with asyncio.timeout(20):
            while not (one.worker.settled and len(serving_then) == PARTITIONS):
                await asyncio.sleep(0.01)
        assert most == RECOVERED_TOGETHER
        assert serving_then[-1] >= PARTITIONS - RECOVERED_TOGETHER
    finally:
        await lab.close()
