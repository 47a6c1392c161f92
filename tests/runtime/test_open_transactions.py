"""An open transaction of another producer keeps its partition from everybody, and is told."""

from __future__ import annotations

import pytest

from log.places import TopicPartition
from services.runtime.open_transactions import HELD_AFTER_S, OpenTransactions
from tests.log.logs import KafkaWorld, poll, polled_until, record

TP = TopicPartition("placet.commands", 2)


class Clock:
    """Seconds that move when they are told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_transaction_that_stands_still_is_told_and_one_that_goes_on_is_not() -> None:
    clock = Clock()
    held = OpenTransactions(clock)
    for offset in range(5):
        assert held.trouble({TP: offset}) == ""
        clock.now += HELD_AFTER_S - 0.1
    assert held.trouble({TP: 4}) == ""
    clock.now += 0.2
    assert "holds back placet.commands/2 from offset 4 on" in held.trouble({TP: 4})
    assert held.trouble({}) == ""
    assert held.trouble({TP: 4}) == ""


@pytest.mark.broker
async def test_feed_names_the_partition_of_an_open_transaction_until_it_ends(
    kafka_log_world: KafkaWorld,
) -> None:
    log = kafka_log_world.log
    tp, other = (TopicPartition(log.topics.commands, number) for number in (0, 1))
    feed = await log.feed("group", "worker", [log.topics.commands])
    for started in (tp, other):
        feed.start_from(started, 0)
    await log.send(tp, record("before"))
    async with kafka_log_world.open_transaction(tp):
        await log.send(tp, record("behind"))
        await log.send(other, record("beside"))
        assert sorted(await poll(feed, 2)) == ["before", "beside"]
        assert await polled_until([feed], lambda: feed.held_back() == {tp: 1}) == []
        assert feed.behind() > 0
    assert await poll(feed, 2) == ["in a transaction", "behind"]
    assert await polled_until([feed], lambda: not feed.held_back()) == []
    await feed.close()
