"""A sender with its outbox and a real receiver; only the clock is the test's."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from services.processors.notifications.channel import Channel, Undelivered
from services.processors.notifications.config import Endpoint
from services.processors.notifications.document import Delivery, When
from services.processors.notifications.notice import Notice
from services.processors.notifications.outbox import Outbox
from services.processors.notifications.render import RenderedMessage
from services.processors.notifications.sender import Sender, back_off_s
from services.processors.notifications.webhook import WebhookChannel, read_secret
from tests.processors.notifications.holds import notice
from tests.processors.notifications.receiver import SECRET, Receiver, receiving

KEY = "n/1"
DOWN: tuple[int, dict[str, str]] = (503, {})


@dataclass
class Hangs:
    """A channel whose try before still hangs for so many turns, before it takes everything."""

    times: int
    asked: int = 0
    taken: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return "fake"

    async def send(self, outgoing: RenderedMessage) -> None:
        self.asked += 1
        if self.asked <= self.times:
            raise Undelivered("the previous try has not ended yet", was_tried=False)
        self.taken.append(outgoing.id)


@dataclass
class World:
    """A sender, and time that passes when told to."""

    directory: Path
    receiver: Receiver
    now_ms: int = 1_770_000_000_000
    buried: list[tuple[list[str], str]] = field(default_factory=list)
    fails_to_bury: bool = False

    def __post_init__(self) -> None:
        self.outbox = Outbox(self.directory / "outbox.db")
        self.sender = self.start()

    def start(self, channel: Channel | None = None, **delivery: Any) -> Sender:
        channel = channel or WebhookChannel(self.receiver.url, read_secret(SECRET), 5.0)
        endpoint = Endpoint(KEY, When(events=("hold_opened",)), Delivery(**delivery), channel)
        self.sender = Sender(
            endpoint, self.outbox, "https://p", self.write, lambda: self.now_ms, random.Random(7)
        )
        return self.sender

    async def write(self, notices: Sequence[Notice], why: str) -> None:
        if self.fails_to_bury:
            raise ConnectionError("no log")
        self.buried.append(([found.id for found in notices], why))

    def queue(self, *notices: Notice, is_open: bool = True) -> None:
        with self.outbox.transaction():
            for found in notices:
                if is_open:
                    self.outbox.put_hold(found.source.key, found.hold_id, found.hold)
                self.outbox.put_message(KEY, found, self.now_ms)

    def close(self, found: Notice) -> None:
        self.outbox.drop_hold(found.source.key, found.hold_id)

    async def work(self, until_ms: int) -> None:
        """Let the sender do all that is due until then."""
        while True:
            wait_s = await self.sender.turn()
            if wait_s is None or self.now_ms + wait_s * 1000 > until_ms:
                return
            self.now_ms += max(1, round(wait_s * 1000))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with receiving() as receiver:
        found = World(tmp_path, receiver)
        yield found
        found.outbox.close()


async def test_turn_messages_are_sent_in_order_and_forgotten(world: World) -> None:
    world.queue(*map(notice, range(3)))
    await world.work(world.now_ms + 1000)
    assert [found.id for found in world.receiver.requests] == ["event-0", "event-1", "event-2"]
    assert world.outbox.waiting() == {}


async def test_turn_same_fact_queued_twice_is_sent_once(world: World) -> None:
    world.queue(notice(1), notice(1))
    await world.work(world.now_ms + 1000)
    assert len(world.receiver.requests) == 1


async def test_turn_endpoint_that_comes_back_gets_what_waited_in_order(world: World) -> None:
    world.receiver.answer = lambda number: DOWN if number < 3 else (200, {})
    world.queue(notice(1), notice(2))
    await world.work(world.now_ms + 600_000)
    assert [found.id for found in world.receiver.requests] == ["event-1"] * 4 + ["event-2"]
    assert world.buried == []


async def test_turn_endpoint_dead_for_good_is_tried_as_often_as_written_within_the_bound(
    world: World,
) -> None:
    world.receiver.answer = lambda _: DOWN
    started_ms = world.now_ms
    world.queue(notice(1))
    await world.work(started_ms + 3_600_000)
    assert len(world.receiver.requests) == 6
    assert world.now_ms - started_ms <= 600_000
    ((ids, why),) = world.buried
    assert ids == ["event-1"]
    assert why == "n/1 (webhook): try 6 was the last one (HTTP 503)"
    assert world.outbox.waiting() == {}


async def test_turn_what_waits_behind_a_dead_endpoint_has_all_its_tries_together(world: World) -> None:
    world.receiver.answer = lambda _: DOWN
    started_ms = world.now_ms
    world.queue(*map(notice, range(10)))
    await world.work(started_ms + 86_400_000)
    assert [found.body["type"] for found in world.receiver.requests] == ["hold_opened"] * 6 + ["digest"] * 6
    alone, together = world.buried
    assert alone[0] == ["event-0"]
    assert together[0] == [f"event-{number}" for number in range(1, 10)]
    assert "try 6 was the last one (HTTP 503)" in together[1]
    assert world.now_ms - started_ms <= 1_205_000


async def test_turn_waiting_behind_another_costs_no_try(world: World) -> None:
    answers = [DOWN] * 6 + [DOWN] * 3
    world.receiver.answer = lambda number: answers[number] if number < len(answers) else (200, {})
    world.queue(notice(1), notice(2))
    await world.work(world.now_ms + 86_400_000)
    assert [ids for ids, _ in world.buried] == [["event-1"]]
    assert [found.id for found in world.receiver.requests] == ["event-1"] * 6 + ["event-2"] * 4


async def test_turn_a_try_that_asked_nobody_counts_neither_as_try_nor_to_the_minute(world: World) -> None:
    channel = Hangs(times=4)
    world.start(per_minute=2, channel=channel)
    world.queue(notice(1))
    await world.work(world.now_ms + 600_000)
    assert (channel.asked, channel.taken) == (5, ["event-1"])
    assert world.buried == []
    assert len(world.outbox.attempts(KEY, 0)) == 1


async def test_turn_a_channel_that_hangs_for_good_is_given_up_within_the_bound(world: World) -> None:
    world.start(channel=Hangs(times=1000))
    started_ms = world.now_ms
    world.queue(notice(1))
    await world.work(started_ms + 86_400_000)
    ((ids, why),) = world.buried
    assert ids == ["event-1"]
    assert why == "n/1 (fake): it was never tried (the previous try has not ended yet)"
    assert world.now_ms - started_ms <= 601_000


async def test_outbox_of_version_1_is_taken_over_with_its_messages(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox.db")
    with outbox.transaction():
        outbox.put_message(KEY, notice(1), 5)
        outbox.put_message(KEY, notice(2), 5)
    outbox.tried(outbox.next(KEY), 2, 9, 11)
    outbox.close()
    with closing(sqlite3.connect(tmp_path / "outbox.db", isolation_level=None)) as before:
        before.execute("ALTER TABLE messages DROP COLUMN began_at_ms")
        before.execute("PRAGMA user_version = 1")
    outbox = Outbox(tmp_path / "outbox.db")
    (tried,) = outbox.next(KEY)
    (fresh,) = outbox.fresh(KEY, 10)
    outbox.close()
    assert (tried.notice.id, tried.tries, tried.began_at_ms) == ("event-1", 2, 5)
    assert (fresh.notice.id, fresh.tries, fresh.began_at_ms) == ("event-2", 0, 0)


async def test_turn_final_refusal_is_not_tried_again_and_holds_nobody_up(world: World) -> None:
    world.receiver.answer = lambda number: (400, {}) if number == 0 else (200, {})
    world.queue(notice(1), notice(2))
    await world.work(world.now_ms + 1000)
    assert [found.id for found in world.receiver.requests] == ["event-1", "event-2"]
    assert world.buried[0][1] == "n/1 (webhook): try 1 was the last one (HTTP 400)"


async def test_turn_retry_after_is_waited_for_within_the_bound(world: World) -> None:
    world.receiver.answer = lambda number: (429, {"Retry-After": "300"}) if number == 0 else (200, {})
    started_ms = world.now_ms
    world.queue(notice(1))
    await world.work(started_ms + 299_000)
    assert len(world.receiver.requests) == 1
    await world.work(started_ms + 600_000)
    assert len(world.receiver.requests) == 2
    assert world.now_ms >= started_ms + 300_000


async def test_turn_retry_after_beyond_the_bound_is_tried_once_more_at_its_end(world: World) -> None:
    world.receiver.answer = lambda _: (503, {"Retry-After": "86400"})
    started_ms = world.now_ms
    world.queue(notice(1))
    await world.work(started_ms + 86_400_000)
    assert len(world.receiver.requests) == 2
    assert world.now_ms - started_ms <= 601_000
    assert len(world.buried) == 1


async def test_turn_message_that_cannot_be_worded_is_given_up_and_holds_nobody_up(world: World) -> None:
    world.start(tries=2, within_seconds=1)
    world.queue(notice(1, deadline_at_ms=2**62), notice(2))
    await world.work(world.now_ms + 10_000)
    assert [found.id for found in world.receiver.requests] == ["event-2"]
    ((ids, why),) = world.buried
    assert ids == ["event-1"]
    assert "an error in the notifier" in why


async def test_turn_dead_letter_that_cannot_be_written_keeps_the_message(world: World) -> None:
    world.receiver.answer = lambda _: (400, {})
    world.fails_to_bury = True
    world.queue(notice(1))
    with pytest.raises(ConnectionError):
        await world.sender.turn()
    assert world.outbox.waiting() == {KEY: 1}


async def test_turn_hold_closed_meanwhile_is_not_asked_for_but_its_end_is_told(world: World) -> None:
    asked, ended = notice(1), notice(2, "hold_resolved", detail="approve")
    world.queue(asked, ended)
    world.close(asked)
    world.close(ended)
    await world.work(world.now_ms + 1000)
    assert [found.id for found in world.receiver.requests] == ["event-2"]
    assert world.sender.dropped == 1


async def test_turn_hold_closed_between_two_tries_is_not_tried_again(world: World) -> None:
    world.receiver.answer = lambda _: DOWN
    world.queue(notice(1))
    await world.sender.turn()
    world.close(notice(1))
    await world.work(world.now_ms + 600_000)
    assert len(world.receiver.requests) == 1
    assert world.buried == []


async def test_turn_more_than_a_minute_takes_end_in_one_digest(world: World) -> None:
    world.start(per_minute=5)
    world.queue(*map(notice, range(30)))
    started_ms = world.now_ms
    await world.work(started_ms + 50_000)
    kinds = [found.body["type"] for found in world.receiver.requests]
    assert kinds == ["hold_opened"] * 4 + ["digest"]
    assert world.receiver.requests[-1].body["count"] == 26
    assert world.outbox.waiting() == {}


async def test_turn_never_more_than_so_many_in_any_minute(world: World) -> None:
    world.start(per_minute=3)
    sent_ms: list[int] = []

    def answer(_number: int) -> tuple[int, dict[str, str]]:
        sent_ms.append(world.now_ms)
        return 200, {}

    world.receiver.answer = answer
    for number in range(40):
        world.queue(notice(number))
        await world.work(world.now_ms + 7_000)
        world.now_ms += 7_000
    await world.work(world.now_ms + 120_000)
    for at_ms in sent_ms:
        assert sum(at_ms - 60_000 < other <= at_ms for other in sent_ms) <= 3
    told: set[str] = set()
    for found in world.receiver.requests:
        told |= {one["id"] for one in found.body.get("messages", [found.body])}
    assert told == {f"event-{number}" for number in range(40)}


async def test_turn_digest_tried_again_is_the_same_under_the_same_id(world: World) -> None:
    world.start(per_minute=1)
    world.receiver.answer = lambda number: DOWN if number == 0 else (200, {})
    world.queue(*map(notice, range(3)))
    await world.sender.turn()
    world.queue(notice(9))
    world.close(notice(1))
    await world.work(world.now_ms + 70_000)
    first, second = world.receiver.requests[:2]
    assert first.body["count"] == 3
    assert (first.id, first.raw) == (second.id, second.raw)


async def test_turn_digest_given_up_leaves_a_letter_for_each(world: World) -> None:
    world.start(per_minute=1, tries=1)
    world.receiver.answer = lambda _: DOWN
    world.queue(*map(notice, range(3)))
    await world.sender.turn()
    assert world.buried[0][0] == ["event-0", "event-1", "event-2"]
    assert world.outbox.waiting() == {}


async def test_turn_started_again_keeps_counting_the_minute(world: World) -> None:
    world.start(per_minute=1)
    world.queue(notice(1))
    await world.work(world.now_ms + 100)
    world.start(per_minute=1)
    world.queue(notice(2))
    await world.work(world.now_ms + 30_000)
    assert len(world.receiver.requests) == 1


async def test_turn_clock_set_back_does_not_stop_messages(world: World) -> None:
    world.start(per_minute=1)
    world.receiver.answer = lambda number: DOWN if number == 1 else (200, {})
    for number in (1, 2):
        world.queue(notice(number))
        await world.work(world.now_ms + 60_500)
    assert len(world.receiver.requests) == 2
    world.now_ms -= 3_600_000
    await world.work(world.now_ms + 61_000)
    assert [found.status for found in world.receiver.requests] == [200, 503, 200]


async def test_run_waits_until_the_log_is_caught_up(world: World) -> None:
    caught_up = asyncio.Event()
    world.queue(notice(1))
    running = asyncio.create_task(world.sender.run(caught_up))
    try:
        await asyncio.sleep(0.2)
        assert world.receiver.requests == []
        caught_up.set()
        world.sender.woken.set()
        async with asyncio.timeout(5):
            while not world.receiver.requests:
                await asyncio.sleep(0.02)
    finally:
        running.cancel()


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_back_off_doubles_and_stays_within_the_bound(chance: float) -> None:
    waits = [back_off_s(number, 6, 600.0, chance) for number in range(1, 6)]
    assert sum(waits) <= 600.0
    assert all(later == pytest.approx(2 * earlier) for earlier, later in pairwise(waits))
    assert waits[0] >= 9.0
