"""Trust as a decider reads it: missing while it is not complete, and while it does not reach the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from log.errors import LogRefused, LogUnreachable
from log.memory.log import MemoryLog
from log.places import Bounds, TopicPartition
from schemas.record import OutRecord
from schemas.topics import Topics
from schemas.trust import COUNT_FORM, ClassFact, ClassPart, TrustCheckpoint, TrustRecord, trust_record
from services.runtime.trust_tail import TrustTail
from vitals.log_reach import BEHIND_MAX_S, LOOK_EVERY_S, LogReach

NAMES = ("acme", "main", "bot", "pay", "risk=writes")
PARTITIONS = 2


class Leaderless(MemoryLog):
    """A log of which some partitions have no leader."""

    def __init__(self) -> None:
        super().__init__(Topics("t"), PARTITIONS, lambda: 0)
        self.without_leader: set[int] = set()
        self.fault: Exception = LogUnreachable("kafka:9092", "it has no leader")

    async def bounds(self, tp: TopicPartition) -> Bounds:
        if tp.topic == self.topics.executions and tp.partition in self.without_leader:
            raise self.fault
        return await super().bounds(tp)


class World:
    """A log of two partitions, the trust in it, and a clock that is set by hand."""

    def __init__(self, log: Leaderless) -> None:
        self.log = log
        self.now_s = 0.0
        self.tail = TrustTail(log, LogReach(lambda: self.now_s))
        self.topic_id = ""

    async def record(self, partition: int, count: int = 1) -> None:
        """Something happens in a partition of the log."""
        tp = TopicPartition(self.log.topics.executions, partition)
        for _ in range(count):
            await self.log.send(tp, OutRecord(b"k", b"v", ()))

    async def count(self, partition: int, through: int, approvals: int = 0) -> None:
        """The trust role counts a partition through an offset."""
        tp = TopicPartition(self.log.topics.trust, partition)
        records: list[TrustRecord] = [self.checkpoint(partition, through, approvals)]
        if approvals:
            records.insert(0, self.part(partition, through, approvals))
        for record in records:
            await self.log.send(tp, trust_record(record))

    def part(self, partition: int, through: int, approvals: int) -> ClassPart:
        tenant, project, agent, tool, trust_class = NAMES
        facts = tuple(ClassFact(offset=n, at_ms=0, kind="approval") for n in range(approvals))
        return ClassPart(
            tenant=tenant,
            project=project,
            agent=agent,
            tool=tool,
            trust_class=trust_class,
            partition=partition,
            facts=facts,
            begins_at=0,
            counted=approvals,
            through_offset=through,
            record_id="r",
            term=0,
            topic_id=self.topic_id,
        )

    def checkpoint(self, partition: int, through: int, evidence: int) -> TrustCheckpoint:
        return TrustCheckpoint(
            partition=partition,
            through_offset=through,
            record_id="r",
            term=0,
            topic_id=self.topic_id,
            at_ms=0,
            evidence=evidence,
            unreadable=0,
            resume_offset=through + 1,
            resume_term=0,
            form=COUNT_FORM,
        )

    def approvals(self) -> int | None:
        found = self.tail.known(*NAMES)
        return None if found is None else len(found.facts)

    async def read(self) -> None:
        """Wait until the tail has read what is on the topic."""
        ends = [
            (await self.log.bounds(TopicPartition(self.log.topics.trust, number)))[1]
            for number in range(PARTITIONS)
        ]
        assert self.tail._book is not None
        sources = self.tail._book._sources
        async with asyncio.timeout(10):
            while [sources[number].position for number in range(PARTITIONS)] != ends:
                await asyncio.sleep(0)

    async def look(self, after_s: float) -> None:
        self.now_s += after_s
        self.tail.look(*await self.tail._readable_ends())


@pytest.fixture
async def world() -> AsyncIterator[World]:
    log = Leaderless()
    found = World(log)
    found.topic_id = await log.topic_id(log.topics.executions)
    for partition in range(PARTITIONS):
        await found.record(partition, 5)
        await found.count(partition, 4, approvals=partition + 1)
    await found.tail.load()
    following = asyncio.create_task(found.tail.follow())
    await found.read()
    yield found
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following


async def test_trust_that_reaches_the_log_is_known(world: World) -> None:
    assert world.approvals() == 3


async def test_trust_behind_where_the_log_ended_at_the_start_is_missing(world: World) -> None:
    await world.record(1, 3)
    again = TrustTail(world.log, LogReach(lambda: world.now_s))
    await again.load()
    world.tail.reach = again.reach
    world.tail._remembered.clear()
    assert world.approvals() is None

    await world.count(1, 7, approvals=4)
    await world.read()
    assert world.approvals() == 5


async def test_trust_that_stays_behind_is_missing_until_it_has_caught_up(world: World) -> None:
    await world.record(0)
    await world.look(1)
    await world.look(BEHIND_MAX_S - 0.1)
    assert world.approvals() == 3

    await world.look(0.1)
    assert world.approvals() is None

    await world.count(0, 5)
    await world.read()
    assert world.approvals() is None, "its parts do not add up"
    await world.count(0, 5, approvals=1)
    await world.read()
    assert world.approvals() == 3


async def test_trust_that_is_counted_anew_is_missing_until_it_has_caught_up(world: World) -> None:
    await world.look(0)
    await world.look(BEHIND_MAX_S)
    tp = TopicPartition(world.log.topics.trust, 1)
    for record in (world.checkpoint(1, 4, 2), world.part(1, 4, 2)):
        await world.log.send(tp, OutRecord(record.key, b"", ()))
    await world.count(1, 2, approvals=1)
    await world.read()
    assert world.approvals() is None

    await world.count(1, 4, approvals=2)
    await world.read()
    assert world.approvals() == 3


async def test_trust_is_missing_once_the_end_of_one_partition_was_not_seen_for_long(world: World) -> None:
    await world.look(LOOK_EVERY_S)
    world.log.without_leader = {1}
    await world.look(LOOK_EVERY_S)
    await world.look(BEHIND_MAX_S - LOOK_EVERY_S)
    assert world.approvals() == 3

    # By the clock alone: also if no look comes to an end.
    world.now_s += 0.1
    assert world.approvals() is None

    world.log.without_leader = set()
    await world.look(0)
    assert world.approvals() == 3


async def test_trust_must_reach_the_ends_that_can_be_read_while_others_cannot(world: World) -> None:
    world.log.without_leader = {1}
    await world.record(0)
    await world.look(LOOK_EVERY_S)
    await world.look(BEHIND_MAX_S)
    assert world.tail.reach._must_reach == {0: 6, 1: 5}

    world.log.without_leader = set()
    await world.look(0)
    assert world.approvals() is None
    await world.count(0, 5, approvals=1)
    await world.read()
    assert world.approvals() == 3


async def test_trust_must_reach_at_once_what_was_written_while_nobody_saw_the_end(world: World) -> None:
    world.log.without_leader = {1}
    await world.look(LOOK_EVERY_S)
    await world.look(BEHIND_MAX_S)
    world.log.without_leader = set()
    await world.record(1, 2)
    await world.look(0)
    assert world.approvals() is None

    await world.count(1, 6, approvals=2)
    await world.read()
    assert world.approvals() == 3


async def test_ends_that_cannot_be_read_are_told_once_and_when_that_changes(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for without_leader in (set(), {1}, {1}, {0, 1}, {0, 1}, set(), set()):
        world.log.without_leader = without_leader
        await world.look(LOOK_EVERY_S)

    told = [record.getMessage().partition(" (")[0] for record in caplog.records]
    assert told == [
        "where partitions [1] of the log end was not read",
        "where partitions [0, 1] of the log end was not read",
        "where each partition of the log ends is read again",
    ]
    assert {record.levelname for record in caplog.records} == {"WARNING"}


async def test_no_end_at_all_is_no_error_and_any_other_fault_of_the_log_is_one(world: World) -> None:
    world.log.without_leader = {0, 1}
    assert await world.tail._readable_ends() == ({}, str(world.log.fault))

    world.log.fault = TimeoutError()
    assert await world.tail._readable_ends() == ({}, "no answer within 5 s")

    world.log.fault = LogRefused("kafka:9092", "the sign-in failed")
    with pytest.raises(LogRefused):
        await world.tail._readable_ends()
