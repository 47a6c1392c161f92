"""The last step of catching up: what is in memory has room in the reader's queue, however long it is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import orjson

from gateway.live.cursor import EARLIEST
from gateway.metrics import Metrics
from gateway.settings import Limits
from gateway.shares.budget import Budget
from gateway.sockets.sse import Stream
from gateway.sockets.subscriptions import subscribe
from tests.gateway.catching import ANNA, Remembered, catch_ups
from tests.gateway.facts import Partition, key_of, new_live, new_outgoing, new_work, proposed, started
from tests.gateway.test_streams import LET_IN

RUNS = 45
LONG = '{"text":"' + '\\"' * 128 * 1024 + '"}'
LIMITS = Limits()


@dataclass
class History:
    """Executions whose events are all in memory, and the readers that begin with the first of them."""

    runs: int
    arguments: str = LONG
    calls: int = 1
    limits: Limits = LIMITS
    budget: Budget = field(default_factory=lambda: Budget(LIMITS.subject_bytes, LIMITS.total_bytes))

    def __post_init__(self) -> None:
        self.live, self.hub = new_live()
        log, partition = Remembered(self.live), Partition(self.live)
        call = proposed().model_copy(update={"arguments": self.arguments})
        for number in range(self.runs):
            log.write(partition, key_of(f"e{number}"), f"c{number}", started(), *[call] * self.calls)
        self.gate: Any = SimpleNamespace(live=self.live, work=new_work(), catch_ups=catch_ups(log, self.hub))

    async def reader(self) -> tuple[Stream, asyncio.Task[None]]:
        """A stream that catches up from the first event on; nobody takes its messages yet."""
        out = new_outgoing(self.limits, self.budget)
        stream = Stream(self.gate, self.hub, ANNA, Metrics(), out, LET_IN)
        catching_up = await subscribe(self.hub, self.gate, stream, ["events"], EARLIEST)
        assert catching_up is not None
        return stream, asyncio.create_task(catching_up)


async def full(stream: Stream) -> None:
    """Wait until a reader has no room; this returns only if the event loop serves others meanwhile."""
    async with asyncio.timeout(30):
        while stream.has_room:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)


async def taken(stream: Stream, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < count:
        found += map(orjson.loads, await asyncio.wait_for(stream.out.take_some(64 * 1024), 30))
    return found


async def test_reader_that_begins_with_long_events_gets_all_of_them_though_its_queue_is_shorter() -> None:
    history = History(RUNS)
    stream, task = await history.reader()
    found = await taken(stream, 2 * RUNS)
    await task
    assert {message["type"] for message in found} == {"event"}
    assert sum(len(orjson.dumps(message)) for message in found) > LIMITS.queue_bytes
    assert [message["execution_id"] for message in found[::2]] == [f"e{number}" for number in range(RUNS)]
    assert stream.channels == {"events"}


async def test_reader_that_stops_leaves_the_others_served_and_gets_the_rest_later() -> None:
    # So short and so few that they fit into memory's last step, and too long for the room that is left.
    history = History(RUNS, '{"text":"' + "x" * 189_000 + '"}')
    stopped, of_stopped = await history.reader()
    await full(stopped)
    other, of_other = await history.reader()
    assert len(await taken(other, 2 * RUNS)) == 2 * RUNS
    await of_other
    assert not of_stopped.done()
    assert len(await taken(stopped, 2 * RUNS)) == 2 * RUNS
    await of_stopped
    assert stopped.channels == {"events"}


async def test_reader_whose_full_queue_is_closed_ends_its_catching_up() -> None:
    history = History(100, '{"text":"' + "x" * 60_000 + '"}', calls=4)
    stream, task = await history.reader()
    await full(stream)
    stream.out.close()
    await asyncio.wait_for(task, 30)
    assert (stream.catching, stream.channels, stream.has_room) == (set(), set(), False)
    assert len(history.gate.catch_ups.turns) == 0


async def test_reader_whose_subject_has_no_room_left_is_told_that_it_is_too_slow() -> None:
    limits = Limits(subject_bytes=1024 * 1024)
    history = History(RUNS, budget=Budget(limits.subject_bytes, limits.total_bytes))
    first, of_first = await history.reader()
    await of_first
    (told,) = await taken(first, 1)
    assert (told["type"], told["reason"]) == ("resync_required", "too_slow")
