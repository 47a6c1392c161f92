"""What every log promises (log/port.py): the same tests for memory and Kafka."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from log.errors import AppendFailed, BatchTooLarge, LogTruncated, LogUnreachable, TopicMissing
from log.places import TopicPartition
from schemas.topics import MAX_MESSAGE_BYTES
from tests.log.logs import PARTITIONS, World, read, read_all, record, records, take, texts


def executions(world: World, partition: int = 0) -> TopicPartition:
    return TopicPartition(world.log.topics.executions, partition)


def commands(world: World, partition: int = 0) -> TopicPartition:
    return TopicPartition(world.log.topics.commands, partition)


# Appending


async def test_append_two_batches_offsets_contiguous_and_base_returned(world: World) -> None:
    appender = await world.log.appender()
    tp = executions(world)
    assert await appender.append(tp, records("a", "b", "c")) == 0
    assert await appender.append(tp, records("d", "e")) == 3
    found = await read_all(world.log, tp)
    assert [(raw.offset, raw.value) for raw in found] == list(enumerate([b"a", b"b", b"c", b"d", b"e"]))


async def test_append_concurrent_batches_none_interleaves(world: World) -> None:
    appender = await world.log.appender()
    tp = executions(world)
    batches = [[f"{batch}-{index}" for index in range(5)] for batch in range(8)]
    bases = await asyncio.gather(*(appender.append(tp, records(*batch)) for batch in batches))
    assert sorted(bases) == list(range(0, 40, 5))
    found = texts(await read_all(world.log, tp))
    assert [found[base : base + 5] for base in bases] == batches


async def test_append_to_several_partitions_each_counts_for_itself(world: World) -> None:
    appender = await world.log.appender()
    appends = (appender.append(executions(world, number), records("a", "b")) for number in range(PARTITIONS))
    assert await asyncio.gather(*appends) == [0] * PARTITIONS


async def test_append_acknowledged_is_within_bounds_at_once(world: World) -> None:
    appender = await world.log.appender()
    for count in range(1, 20):
        assert await appender.append(executions(world), records("a")) == count - 1
        assert await world.log.bounds(executions(world)) == (0, count)


async def test_append_keys_values_headers_come_back_as_sent(world: World) -> None:
    appender = await world.log.appender()
    sent = record("value", key="tenant/project/execution")._replace(
        headers=(("ce_id", b"1"), ("empty", b""), ("ce_id", b"again"), ("bytes", bytes(range(256))))
    )
    await appender.append(executions(world, 2), [sent])
    (raw,) = await read_all(world.log, executions(world, 2))
    assert (raw.partition, raw.offset, raw.key, raw.value, raw.headers) == (2, 0, *sent)
    assert raw.timestamp_ms > 1_600_000_000_000


@pytest.mark.parametrize("sizes", [[3 * MAX_MESSAGE_BYTES], [1000, MAX_MESSAGE_BYTES], [700_000] * 4])
async def test_append_batch_too_large_refused_whole_and_appender_still_good(
    world: World, sizes: list[int]
) -> None:
    appender = await world.log.appender()
    with pytest.raises(BatchTooLarge) as caught:
        await appender.append(executions(world), [record("x" * size) for size in sizes])
    assert caught.value.size_bytes >= sum(sizes)
    assert await appender.append(executions(world), records("small")) == 0


async def test_append_large_batch_below_the_limit_is_taken_whole(world: World) -> None:
    appender = await world.log.appender()
    assert await appender.append(executions(world), [record("x" * 600_000)] * 3) == 0
    assert await world.log.bounds(executions(world)) == (0, 3)


async def test_append_nothing_is_a_mistake(world: World) -> None:
    appender = await world.log.appender()
    with pytest.raises(ValueError, match="at least one record"):
        await appender.append(executions(world), [])


async def test_append_after_failure_refused_on_every_partition(world: World) -> None:
    appender = await world.log.appender()
    with pytest.raises(AppendFailed):
        await appender.append(executions(world, PARTITIONS), records("nowhere"))
    with pytest.raises(AppendFailed):
        await appender.append(executions(world, 1), records("later"))
    await appender.abandon()
    assert await world.log.bounds(executions(world, 1)) == (0, 0)
    fresh = await world.log.appender()
    assert await fresh.append(executions(world, 1), records("again")) == 0


async def test_append_cancelled_spoils_the_appender(world: World) -> None:
    appender = await world.log.appender()
    append = asyncio.ensure_future(appender.append(executions(world), records("perhaps")))
    await asyncio.sleep(0)
    append.cancel()
    with pytest.raises(asyncio.CancelledError):
        await append
    with pytest.raises(AppendFailed, match="cancelled"):
        await appender.append(executions(world), records("later"))


async def test_append_after_abandon_refused(world: World) -> None:
    appender = await world.log.appender()
    await appender.append(executions(world), records("a"))
    await appender.abandon()
    await appender.abandon()
    with pytest.raises(AppendFailed, match="abandoned"):
        await appender.append(executions(world), records("b"))
    assert texts(await read_all(world.log, executions(world))) == ["a"]


async def test_append_by_two_appenders_both_land(world: World) -> None:
    first, second = await world.log.appender(), await world.log.appender()
    assert await first.append(executions(world), records("a")) == 0
    assert await second.append(executions(world), records("b")) == 1
    assert await first.append(executions(world), records("c")) == 2


async def test_send_returns_offset_and_lands(world: World) -> None:
    assert [await world.log.send(commands(world), record(text)) for text in "abc"] == [0, 1, 2]
    assert texts(await read_all(world.log, commands(world))) == ["a", "b", "c"]


async def test_send_too_large_or_nowhere_refused(world: World) -> None:
    with pytest.raises(BatchTooLarge):
        await world.log.send(commands(world), record("x" * 3 * MAX_MESSAGE_BYTES))
    with pytest.raises(TopicMissing):
        await world.log.send(commands(world, PARTITIONS), record("x"))


# What there is


async def test_topic_facts_known_topic_told(world: World) -> None:
    topics = world.log.topics
    assert await world.log.partition_count(topics.executions) == PARTITIONS
    assert await world.log.partition_count(topics.definitions) == 1
    ids = {await world.log.topic_id(spec.name) for spec in topics.specs()}
    assert len(ids) == len(topics.specs())


async def test_topic_facts_unknown_topic_typed_error(world: World) -> None:
    with pytest.raises(TopicMissing) as caught:
        await world.log.topic_id("nobody.made.this")
    assert caught.value.topic == "nobody.made.this"
    with pytest.raises(TopicMissing):
        await world.log.bounds(executions(world, PARTITIONS))


async def test_topic_id_recreated_topic_has_another(world: World) -> None:
    topic = world.log.topics.executions
    appender = await world.log.appender()
    await appender.append(executions(world), records("a"))
    before = await world.log.topic_id(topic)
    assert await world.log.topic_id(topic) == before
    await world.recreate(topic)
    assert await world.log.topic_id(topic) != before
    assert await world.log.bounds(executions(world)) == (0, 0)


# Reading


async def test_read_range_exactly(world: World) -> None:
    appender = await world.log.appender()
    tp = executions(world, 1)
    await appender.append(tp, records(*"abcdefgh"))
    assert texts(await read(world.log, tp, 2, 5)) == ["c", "d", "e"]
    assert texts(await read(world.log, tp, 0, 8)) == list("abcdefgh")
    assert await read(world.log, tp, 8, 8) == []


async def test_read_many_records_in_order(world: World) -> None:
    appender = await world.log.appender()
    tp = executions(world)
    for batch in range(5):
        await appender.append(tp, records(*(str(batch * 700 + index) for index in range(700))))
    assert texts(await read(world.log, tp, 3, 3_498)) == [str(number) for number in range(3, 3_498)]


async def test_read_over_a_gap_ends(world: World) -> None:
    tp = executions(world)
    await world.leave_gap(tp)
    assert await world.log.bounds(tp) == (0, 2)
    assert [raw.offset for raw in await read(world.log, tp, 0, 2)] == [0]
    assert await read(world.log, tp, 1, 2) == []
    assert await world.log.send(tp, record("behind the gap")) == 2
    assert [raw.offset for raw in await read(world.log, tp, 0, 3)] == [0, 2]


async def test_read_outside_bounds_truncated(world: World) -> None:
    appender = await world.log.appender()
    tp = executions(world)
    await appender.append(tp, records(*"abcdef"))
    await world.delete_before(tp, 4)
    assert await world.log.bounds(tp) == (4, 6)
    assert texts(await read(world.log, tp, 4, 6)) == ["e", "f"]
    for start, stop, wanted in [(3, 6, 3), (4, 7, 7)]:
        with pytest.raises(LogTruncated) as caught:
            await read(world.log, tp, start, stop)
        assert (caught.value.wanted, caught.value.first, caught.value.end) == (wanted, 4, 6)


async def test_tail_several_partitions_from_their_offsets(world: World) -> None:
    appender = await world.log.appender()
    for number in range(PARTITIONS):
        await appender.append(executions(world, number), records(f"old{number}", f"new{number}"))
    tail = world.log.tail(world.log.topics.executions, {0: 1, 1: 0, 2: 2})
    assert sorted(await take(tail, 3)) == [(0, "new0"), (1, "new1"), (1, "old1")]


async def test_tail_waits_for_what_comes(world: World) -> None:
    appender = await world.log.appender()
    taken = asyncio.ensure_future(take(world.log.tail(world.log.topics.executions, {0: 0, 1: 0}), 3))
    await asyncio.sleep(0)
    await appender.append(executions(world, 1), records("a", "b"))
    await appender.append(executions(world, 2), records("of no interest"))
    await appender.append(executions(world, 0), records("c"))
    assert sorted(await taken) == [(0, "c"), (1, "a"), (1, "b")]


@pytest.mark.parametrize("start", [1, 4])
async def test_tail_from_outside_bounds_truncated(world: World, start: int) -> None:
    appender = await world.log.appender()
    tp = executions(world)
    await appender.append(tp, records("a", "b", "c"))
    await world.delete_before(tp, 2)
    with pytest.raises(LogTruncated) as caught:
        await take(world.log.tail(tp.topic, {0: start}), 1)
    assert (caught.value.tp, caught.value.wanted) == (tp, start)


async def test_tail_ends_when_the_log_is_closed(world: World) -> None:
    log = world.another_log()
    appender = await log.appender()
    await appender.append(executions(world), records("a"))
    seen: list[str] = []
    async with asyncio.timeout(20), aclosing(log.tail(world.log.topics.executions, {0: 0})) as tail:
        async for _, raws in tail:
            seen += texts(raws)
            await log.close()
    assert seen == ["a"]
    with pytest.raises(LogUnreachable):
        await log.bounds(executions(world))
