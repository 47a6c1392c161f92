"""What every command feed promises (log/port.py): the same tests for memory and Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from log.errors import LogTruncated, LogUnreachable, MemberReplaced, TopicMissing
from log.kafka.client import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS
from log.places import TopicPartition
from log.port import CommandFeed, Log
from tests.log.logs import PARTITIONS, World, poll, polled_until, record


def commands(world: World, partition: int = 0) -> TopicPartition:
    return TopicPartition(world.log.topics.commands, partition)


async def test_feed_new_partition_silent_until_started(world: World) -> None:
    for number in range(PARTITIONS):
        await world.log.send(commands(world, number), record(f"{number}a"))
        await world.log.send(commands(world, number), record(f"{number}b"))
    feed = await world.log.feed("group", "worker", [world.log.topics.commands])
    assert feed.assignment() == {commands(world, number) for number in range(PARTITIONS)}
    assert [await feed.poll(150) for _ in range(2)] == [{}, {}]
    feed.start_from(commands(world, 1), 1)
    assert await poll(feed, 1) == ["1b"]
    feed.start_from(commands(world, 0), 0)
    assert await poll(feed, 2) == ["0a", "0b"]
    assert await feed.poll(150) == {}
    await feed.close()


async def test_feed_delivers_what_comes_in_order(world: World) -> None:
    feed = await world.log.feed("group", "worker", [world.log.topics.commands])
    feed.start_from(commands(world), 0)
    polling = asyncio.ensure_future(poll(feed, 50))
    for number in range(50):
        await world.log.send(commands(world), record(str(number)))
    assert await polling == [str(number) for number in range(50)]
    await feed.close()


async def test_feed_paused_partition_keeps_its_place(world: World) -> None:
    feed = await world.log.feed("group", "worker", [world.log.topics.commands])
    feed.start_from(commands(world, 0), 0)
    feed.start_from(commands(world, 1), 0)
    feed.pause(commands(world, 0))
    for number in (0, 1):
        for text in "abc":
            await world.log.send(commands(world, number), record(f"{number}{text}"))
    assert await poll(feed, 3) == ["1a", "1b", "1c"]
    feed.resume(commands(world, 0))
    assert await poll(feed, 3) == ["0a", "0b", "0c"]
    feed.resume(commands(world, 2))
    await world.log.send(commands(world, 2), record("never started"))
    assert await feed.poll(150) == {}
    await feed.close()


async def test_feed_started_again_jumps(world: World) -> None:
    feed = await world.log.feed("group", "worker", [world.log.topics.commands])
    for text in "abc":
        await world.log.send(commands(world), record(text))
    feed.start_from(commands(world), 0)
    assert await poll(feed, 3) == ["a", "b", "c"]
    feed.start_from(commands(world), 1)
    assert await poll(feed, 2) == ["b", "c"]
    await feed.close()


@pytest.mark.parametrize("start", [1, 5])
async def test_feed_started_outside_bounds_truncated(world: World, start: int) -> None:
    for text in "abc":
        await world.log.send(commands(world), record(text))
    await world.delete_before(commands(world), 2)
    feed = await world.log.feed("group", "worker", [world.log.topics.commands])
    feed.start_from(commands(world), start)
    with pytest.raises(LogTruncated) as caught:
        await poll(feed, 1)
    assert (caught.value.wanted, caught.value.first, caught.value.end) == (start, 2, 3)
    feed.start_from(commands(world), 2)
    assert await poll(feed, 1) == ["c"]
    await feed.close()


async def test_feed_cancelled_poll_loses_nothing(world: World) -> None:
    feed = await world.log.feed("group", "worker", [world.log.topics.commands])
    feed.start_from(commands(world), 0)
    for number in range(20):
        await world.log.send(commands(world), record(str(number)))
        polling = asyncio.ensure_future(feed.poll(1_000))
        for _ in range(number):
            await asyncio.sleep(0)
        polling.cancel()
        done = await asyncio.gather(polling, return_exceptions=True)
        if not isinstance(done[0], BaseException):
            feed.start_from(commands(world), 0)
    assert await poll(feed, 20) == [str(number) for number in range(20)]
    await feed.close()


async def test_feed_second_member_takes_a_share_and_the_rest_goes_on(world: World) -> None:
    topic = world.log.topics.commands
    first = await world.log.feed("group", "first", [topic])
    for tp in first.assignment():
        first.start_from(tp, 0)
        await world.log.send(tp, record(f"{tp.partition} before"))
    assert sorted(await poll(first, 3)) == ["0 before", "1 before", "2 before"]

    joining = asyncio.ensure_future(world.another_log().feed("group", "second", [topic]))
    assert await polled_until([first], joining.done) == []
    second = await joining
    assert await polled_until([first, second], lambda: len(first.assignment()) < PARTITIONS) == []
    assert (len(first.assignment()), len(second.assignment())) == (2, 1)
    assert not first.assignment() & second.assignment()

    for number in range(PARTITIONS):
        await world.log.send(commands(world, number), record(f"{number} after"))
    # What stayed goes on by itself, without a repeat; what moved waits to be started.
    assert sorted(await poll(first, 2)) == sorted(f"{tp.partition} after" for tp in first.assignment())
    assert await second.poll(150) == {}
    (moved,) = second.assignment()
    second.start_from(moved, 1)
    assert await poll(second, 1) == [f"{moved.partition} after"]
    await asyncio.gather(first.close(), second.close())


async def test_feed_member_leaves_the_other_takes_over(world: World) -> None:
    topic = world.log.topics.commands
    first = await world.log.feed("group", "first", [topic])
    joining = asyncio.ensure_future(world.another_log().feed("group", "second", [topic]))
    await polled_until([first], joining.done)
    second = await joining
    await polled_until([first, second], lambda: len(first.assignment()) == 2)
    kept = second.assignment()
    for tp in kept:
        second.start_from(tp, 0)

    await first.close()
    assert first.assignment() == frozenset()
    with pytest.raises(LogUnreachable):
        await first.poll(0)
    await polled_until([second], lambda: len(second.assignment()) == PARTITIONS)
    for tp in second.assignment():
        await world.log.send(tp, record(str(tp.partition)))
    assert await poll(second, 1) == [str(tp.partition) for tp in kept]
    for tp in second.assignment() - kept:
        second.start_from(tp, 0)
    assert sorted(await poll(second, 2)) == sorted(str(tp.partition) for tp in second.assignment() - kept)
    await second.close()


async def test_feed_member_of_the_same_name_takes_its_place_at_once_and_for_good(world: World) -> None:
    """As a worker that was killed does when it is back. Should the other live: it is told, and stays away."""
    topic = world.log.topics.commands
    first = await world.log.feed("group", "worker", [topic])
    other = await joined(world.another_log(), [first], "other")
    mine = first.assignment()
    assert len(mine) == 2

    async with asyncio.timeout(SESSION_TIMEOUT_MS / 2_000):
        second = await world.another_log().feed("group", "worker", [topic])
    assert second.assignment() == mine
    with pytest.raises(MemberReplaced, match="Another process runs as worker in group"):
        await polled_until([first], lambda: False)
    with pytest.raises(MemberReplaced):
        await first.poll(0)
    await first.close()

    # The one whose place it was does not take it back, nor does its good-bye take it away.
    await asyncio.gather(*(feed.poll(HEARTBEAT_INTERVAL_MS * 4) for feed in (second, other)))
    for tp in mine:
        second.start_from(tp, 0)
        await world.log.send(tp, record(str(tp.partition)))
    assert sorted(await poll(second, 2)) == sorted(str(tp.partition) for tp in mine)
    assert (second.assignment(), len(other.assignment())) == (mine, PARTITIONS - 2)
    await asyncio.gather(second.close(), other.close())


async def joined(log: Log, others: Sequence[CommandFeed], member: str) -> CommandFeed:
    """One more member, while the others are polled, as they must be to let it in."""
    joining = asyncio.ensure_future(log.feed("group", member, [log.topics.commands]))
    await polled_until(others, joining.done)
    await polled_until(others, lambda: sum(len(other.assignment()) for other in others) < PARTITIONS)
    return await joining


async def test_feed_other_group_gets_everything_too(world: World) -> None:
    topic = world.log.topics.commands
    feeds = [await world.log.feed(group, "worker", [topic]) for group in ("one", "two")]
    await world.log.send(commands(world), record("a"))
    for feed in feeds:
        feed.start_from(commands(world), 0)
        assert await poll(feed, 1) == ["a"]
        await feed.close()


async def test_feed_two_topics_of_different_width(world: World) -> None:
    topics = world.log.topics
    feed = await world.log.feed("group", "worker", [topics.commands, topics.definition_commands])
    assert len(feed.assignment()) == PARTITIONS + 1
    definition = TopicPartition(topics.definition_commands, 0)
    feed.start_from(definition, 0)
    await world.log.send(definition, record("policy"))
    assert await poll(feed, 1) == ["policy"]
    await feed.close()


async def test_feed_unknown_topic_typed_error(world: World) -> None:
    with pytest.raises(TopicMissing):
        await world.log.feed("group", "worker", ["nobody.made.this"])
