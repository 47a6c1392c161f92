"""What the memory log does by itself: sharing partitions, and the same history each time."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log.errors import LogTruncated
from log.memory.feed import share
from log.memory.log import MemoryLog
from log.places import TopicPartition
from schemas.topics import Topics
from tests.log.logs import PARTITIONS, MemoryWorld, memory_world, poll, record, take


@given(st.integers(0, 20), st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_share_any_history_even_complete_and_sticky(count: int, steps: list[int]) -> None:
    partitions = [TopicPartition("t", number) for number in range(count)]
    held: list[frozenset[TopicPartition]] = []
    for members in steps:
        before = [*held[:members], *[frozenset[TopicPartition]()] * (members - len(held))]
        held = share(partitions, before)
        assert len(held) == members
        if members:
            assert sorted(tp for mine in held for tp in mine) == partitions
            assert max(map(len, held)) - min(map(len, held)) <= 1
            for mine, had in zip(held, before, strict=True):
                assert len(mine & had) == min(len(mine), len(had))


def test_history_repeated_is_the_same() -> None:
    async def history() -> list[object]:
        async with memory_world() as world:
            return await _busy_hour(world)

    first, second = asyncio.run(history()), asyncio.run(history())
    assert first == second
    assert len(first) == 60


async def _busy_hour(world: MemoryWorld) -> list[object]:
    log, topic = world.log, world.log.topics.commands
    seen: list[object] = []

    async def consume(name: str) -> None:
        feed = await log.feed("group", name, [topic])
        for tp in feed.assignment():
            feed.start_from(tp, 0)
        while len(seen) < 60:
            for raws in (await feed.poll(50)).values():
                seen.extend((name, raw) for raw in raws)

    async def produce() -> None:
        for number in range(60):
            await log.send(TopicPartition(topic, number % PARTITIONS), record(str(number)))

    async with asyncio.TaskGroup() as group:
        for name in ("first", "second"):
            group.create_task(consume(name))
        group.create_task(produce())
    return seen


@pytest.mark.parametrize("harm", ["recreated", "cut"])
async def test_tail_topic_recreated_or_cut_stops(harm: str) -> None:
    log = MemoryLog(Topics(), 2, lambda: 0)
    tp = TopicPartition(log.topics.executions, 0)
    for text in "abc":
        await log.send(tp, record(text))
    following = asyncio.ensure_future(anext(log.tail(tp.topic, {0: 3})))
    await asyncio.sleep(0)
    if harm == "recreated":
        log.recreate(tp.topic)
    else:
        log.partition(tp).truncate(1)
    await log.send(TopicPartition(tp.topic, 1), record("elsewhere"))
    async with asyncio.timeout(5):
        with pytest.raises(LogTruncated):
            await following


async def test_land_late_batch_seen_by_all() -> None:
    async with memory_world() as world:
        tp = TopicPartition(world.log.topics.commands, 0)
        feed = await world.log.feed("group", "worker", [tp.topic])
        feed.start_from(tp, 0)
        assert world.log.land(tp, [record("late")]) == 0
        assert await poll(feed, 1) == ["late"]
        assert await take(world.log.tail(tp.topic, {0: 0}), 1) == [(0, "late")]
