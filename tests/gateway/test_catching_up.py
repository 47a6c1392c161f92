"""Catching up from a cursor: over the log, over what is in memory, and over the seam between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.problems import Problem
from gateway.pushes import catching_up, past_rows, reading_turns
from gateway.pushes.hub import Hub
from gateway.pushes.resyncs import Resync
from schemas.actor import Actor
from schemas.events import calls as c
from schemas.message import Message
from schemas.refusals import Refusal
from tests.gateway.catching import ANNA, Remembered, Returner, catch_ups
from tests.gateway.facts import (
    Partition,
    decided,
    held,
    key_of,
    new_live,
    proposed,
    released,
    started,
    verdict,
)

KEY = key_of("e1")
MANY = ("holds", "events", "executions:e1", "calls:e1/c1")


def hold_of(key: bytes) -> str:
    """The hold of an execution's only call."""
    return f"hold-of-{key.decode().rpartition('/')[2]}"


def held_call(key: bytes) -> list[Message]:
    return [proposed(), verdict(), held(hold_id=hold_of(key))]


class Site:
    """A gateway's live state, the log behind it, and three partitions to write."""

    def __init__(self, hub: Hub | None = None) -> None:
        self.live, self.hub = new_live(hub)
        self.log = Remembered(self.live)
        self.partitions = [Partition(self.live, number) for number in range(3)]
        self.catch_ups = catch_ups(self.log, self.hub)

    def story(self, number: int = 0, key: bytes = KEY) -> None:
        for command_id, bodies in (
            ("start", [started()]),
            ("propose", held_call(key)),
            ("decide", [decided(hold_of(key)), released()]),
        ):
            self.log.write(self.partitions[number], key, f"{command_id}-{key.decode()}", *bodies)

    async def caught_up(self, channels: set[str], cursor: str, reader: Returner | None = None) -> Returner:
        reader = reader or Returner()
        vector = self.live.position.key.read(cursor)
        await asyncio.wait_for(self.catch_ups.run(reader, channels, cursor, vector), 5)
        return reader


async def begun() -> None:
    """Let a task that was just made come to where it waits for room, or for the log."""
    for _ in range(4):
        await asyncio.sleep(0)


def written(site: Site, data: st.DataObject) -> None:
    """Some work on three partitions, with records in between that count for nobody."""
    for turn in range(data.draw(st.integers(1, 8))):
        number = data.draw(st.integers(0, 2))
        key = KEY if number == 0 and turn == 0 else key_of(f"x{turn}")
        partition = site.partitions[number]
        if data.draw(st.booleans()):
            site.log.zombie(partition, key, released())
        if data.draw(st.booleans()):
            site.log.write(partition, key_of("foreign", tenant="other"), f"foreign-{turn}", started())
        site.log.write(partition, key, f"propose-{turn}", started(), *held_call(key))
        if data.draw(st.booleans()):
            site.log.write(partition, key, f"decide-{turn}", decided(hold_of(key)), released())


@settings(max_examples=60)
@given(st.data())
def test_case_27_catch_up_from_any_cursor_gives_every_message_once_however_little_is_in_memory(
    data: st.DataObject,
) -> None:
    site = Site()
    channels = data.draw(st.sets(st.sampled_from(MANY), min_size=1))
    whole = Returner()
    site.hub.subscribe(whole, channels)
    written(site, data)
    if not whole.messages:
        return
    place = data.draw(st.integers(0, len(whole.messages) - 1))
    ring = site.live.ring
    ring.max_groups = data.draw(st.integers(0, 12))
    while len(ring._groups) > max(ring.max_groups, 0):
        ring._drop_oldest()
    resumed = asyncio.run(site.caught_up(channels, whole.messages[place]["cursor"]))

    assert resumed.resyncs == 0
    assert by_lane(resumed.messages) == by_lane(whole.messages[place + 1 :])
    assert resumed.channels == channels
    # Whoever breaks off again goes on from any of these messages, too.
    if resumed.messages:
        again = data.draw(st.integers(0, len(resumed.messages) - 1))
        once_more = asyncio.run(site.caught_up(channels, resumed.messages[again]["cursor"]))
        assert by_lane(once_more.messages) == by_lane(resumed.messages[again + 1 :])


def by_lane(messages: list[dict[str, object]]) -> dict[str, list[dict[str, object]]]:
    """What was said, without cursors, by execution: there is no order between partitions."""
    found: dict[str, list[dict[str, object]]] = {}
    for message in messages:
        said = {name: value for name, value in message.items() if name != "cursor"}
        found.setdefault(str(message["execution_id"]), []).append(said)
    return found


async def test_case_27_catch_up_over_the_log_then_live_has_no_seam() -> None:
    site = Site()
    cursor = site.live.position.cursor()
    site.live.ring.max_groups = 1
    site.story()
    reader = await site.caught_up({"events"}, cursor)
    site.story(1, key_of("e2"))

    types = [message["event_type"] for message in reader.messages]
    assert types[:1] == ["ExecutionStarted"]
    assert len(types) == 2 * (1 + len(held_call(KEY)) + 2)
    assert site.log.readings > 0


async def test_case_27_catch_up_while_more_comes_gives_it_once() -> None:
    site = Site()
    cursor = site.live.position.cursor()
    site.live.ring.max_groups = 2
    site.story()
    reader = Returner()

    async def busy() -> None:
        for number in range(40):
            site.story(number % 3, key_of(f"busy-{number}"))
            await asyncio.sleep(0)

    await asyncio.gather(site.caught_up({"events"}, cursor, reader), busy())
    site.story(2, key_of("last"))
    ids = [message["event_id"] for message in reader.messages]
    assert len(ids) == len(set(ids)) == len(site.log.facts)


async def test_catch_up_channels_that_were_live_rest_and_nothing_of_theirs_is_lost_or_given_twice() -> None:
    site = Site()
    cursor = site.live.position.cursor()
    site.story()
    reader = Returner()
    site.hub.subscribe(reader, ["holds"])
    while site.live.ring._groups:
        site.live.ring._drop_oldest()
    catching = asyncio.create_task(site.caught_up({"executions:e1"}, cursor, reader))
    await begun()
    assert reader.behind is not None
    site.story(1, key_of("e2"))
    await catching
    site.story(2, key_of("e3"))

    holds = [message["execution_id"] for message in reader.messages if message["type"] == "hold_resolved"]
    assert sorted(holds) == ["e1", "e2", "e3"]
    assert reader.channels == {"holds", "executions:e1"}


async def test_catch_up_answers_cursor_covers_only_what_was_given() -> None:
    site = Site()
    cursor = site.live.position.cursor()
    site.live.ring.max_groups = 0
    site.story()
    reader = Returner(has_room=False)
    site.hub.expect_decision(reader, (KEY, "c1"))
    catching = asyncio.create_task(site.caught_up({"events"}, cursor, reader))
    await begun()
    site.log.write(site.partitions[0], KEY, "again", decided(hold_of(KEY)), released())

    assert reader.behind == cursor
    reader.has_room = True
    await catching
    assert reader.behind is None


async def test_catch_up_of_what_was_deleted_says_so() -> None:
    site = Site()
    cursor = site.live.position.cursor()
    site.live.ring.max_groups = 1
    site.story()
    site.log.deleted = 2
    reader = await site.caught_up({"events"}, cursor)
    assert (reader.messages, reader.reasons) == ([], [Resync.GONE])


async def test_catch_up_with_a_cursor_of_another_log_says_so() -> None:
    other = Site()
    other.log.write(other.partitions[0], key_of("other"), "x", proposed())
    other.log.write(other.partitions[0], key_of("other"), "y", proposed("c2"))
    vector = other.live.position.key.read(other.live.position.cursor())
    cursor = other.live.position.key.write(vector._replace(marks=(0, 7, 0, 0)))
    site = Site()
    site.story()
    reader = await site.caught_up({"events"}, cursor)
    assert reader.reasons == [Resync.GONE]


async def test_catch_up_unsubscribed_meanwhile_ends() -> None:
    site = Site()
    cursor = site.live.position.cursor()
    site.live.ring.max_groups = 0
    site.story()
    reader = Returner(has_room=False)
    catching = asyncio.create_task(site.caught_up({"events"}, cursor, reader))
    await begun()
    reader.catching.clear()
    reader.has_room = True
    await catching
    assert (reader.messages, reader.channels) == ([], set())


async def test_catch_up_too_many_of_one_subject_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_turns, "WAITING_OF_ONE_MAX", 1)
    site = Site()
    cursor = site.live.position.cursor()
    slow = Returner(has_room=False)
    waiting = asyncio.create_task(site.caught_up({"events"}, cursor, slow))
    await begun()
    with pytest.raises(Problem) as caught:
        await site.caught_up({"events"}, cursor)
    otto = Returner(ANNA.model_copy(update={"subject": "otto"}))
    await site.caught_up({"events"}, cursor, otto)
    slow.has_room = True
    await waiting
    assert caught.value.code is Refusal.QUOTA


async def test_looking_up_a_place_in_the_log_takes_the_subjects_place_among_those_who_catch_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading_turns, "WAITING_OF_ONE_MAX", 1)
    site = Site()
    site.story()
    cursor = site.live.position.key.read(site.live.position.cursor())
    site.live.ring.max_groups = 1
    site.story(key=key_of("e2"))
    lane, otto = 1, Returner(ANNA.model_copy(update={"subject": "otto"}))
    assert not site.live.ring.connects(lane, cursor.offsets[lane], cursor.marks[lane])
    # The shared turns are taken, so that whoever comes has to wait for one.
    for _ in range(reading_turns.TURNS):
        await site.catch_ups.turns.shared.acquire()
    waiting = asyncio.create_task(site.catch_ups.is_of_this_log(Returner(), cursor, lane))
    await begun()
    with pytest.raises(Problem) as caught:
        await asyncio.wait_for(site.catch_ups.is_of_this_log(Returner(), cursor, lane), 5)
    assert caught.value.code is Refusal.QUOTA
    theirs = asyncio.create_task(site.catch_ups.is_of_this_log(otto, cursor, lane))
    await begun()
    for _ in range(reading_turns.TURNS):
        site.catch_ups.turns.shared.release()
    assert all(await asyncio.wait_for(asyncio.gather(waiting, theirs), 5))
    # It has given its place back, also where the place is of another log.
    other = cursor._replace(marks=tuple(mark ^ 1 for mark in cursor.marks))
    assert not await site.catch_ups.is_of_this_log(Returner(), other, lane)
    assert await site.catch_ups.is_of_this_log(Returner(), cursor, lane)


async def test_catch_up_has_no_grants_token() -> None:
    site = Site(Hub(lambda row: "token"))
    start = site.live.position.cursor()
    site.story()
    agent = Returner(Actor(subject="bot", tenant="acme", project="books", roles=("agent",), agent="billing"))
    await site.caught_up({"calls:e1/c1"}, start, agent)
    assert [m["grant"]["token"] for m in agent.messages if m["type"] == "tool_call_decided"] == [None]


def after_start(site: Site) -> str:
    """The cursor after an execution has started; only the log has what came since, and rows are needed for it."""
    site.log.write(site.partitions[0], KEY, "begin", started())
    cursor = site.live.position.cursor()
    site.live.ring.max_groups = 0
    site.log.write(site.partitions[0], KEY, "propose", *held_call(KEY))
    site.log.write(site.partitions[0], KEY, "decide", decided(hold_of(KEY)), released())
    return cursor


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not happened():
            await asyncio.sleep(0)


@pytest.mark.parametrize("away", ["is_unavailable", "are_views_behind"])
async def test_catch_up_waits_for_views_that_cannot_be_read_and_nothing_is_lost(
    away: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_rows, "VIEWS_WITHIN_S", 0.01)
    monkeypatch.setattr(catching_up, "RETRY_S", 0.01)
    site, whole = Site(), Returner()
    site.hub.subscribe(whole, {"executions:e1"})
    cursor = after_start(site)
    setattr(site.log, away, True)
    reader, others = Returner(), Returner(ANNA.model_copy(update={"subject": "otto"}))
    catching = asyncio.create_task(site.caught_up({"executions:e1"}, cursor, reader))
    await until(lambda: site.log.asked_in_vain > 2)
    # It keeps no turn while it waits: whoever needs no rows is served.
    await site.caught_up({"events"}, cursor, others)
    assert not catching.done()
    setattr(site.log, away, False)
    await catching

    assert (reader.resyncs, reader.problems) == (0, [])
    assert by_lane(reader.messages) == by_lane(whole.messages[-len(reader.messages) :])
    assert len(reader.messages) == len(whole.messages) - 1
    assert len(others.messages) == len(held_call(KEY)) + 2


async def test_catch_up_that_waits_for_views_too_long_ends_without_a_later_cursor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catching_up, "RETRY_S", 0.01)
    monkeypatch.setattr(catching_up, "WHOLE_S", 0.1)
    site = Site()
    cursor = after_start(site)
    site.log.is_unavailable = True
    reader = await site.caught_up({"executions:e1"}, cursor)
    assert (reader.messages, reader.resyncs, len(site.catch_ups.turns)) == ([], 0, 0)
    assert [problem.code for problem in reader.problems] == [Refusal.UNAVAILABLE]


async def test_catch_up_that_waits_for_views_ends_when_its_reader_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catching_up, "RETRY_S", 0.01)
    site, reader = Site(), Returner()
    cursor = after_start(site)
    site.log.is_unavailable = True
    catching = asyncio.create_task(site.caught_up({"executions:e1"}, cursor, reader))
    await until(lambda: site.log.asked_in_vain > 2)
    reader.catching.clear()
    await catching
    assert (reader.resyncs, reader.problems, len(site.catch_ups.turns)) == (0, [], 0)


class Pausing(Returner):
    """Has no room any more once it was sent a message about this call."""

    until = "z5"

    def push(self, message: bytes) -> None:
        super().push(message)
        if self.messages[-1].get("call_id") == self.until:
            self.has_room, self.until = False, ""


async def test_catch_up_that_goes_from_the_log_to_memory_and_back_has_rows_of_the_right_moment() -> None:
    site, channels = Site(), {"executions:e1"}
    whole, partition, log, ring = Returner(), site.partitions[0], site.log, site.live.ring
    site.hub.subscribe(whole, channels)
    cursor = site.live.position.cursor()

    def forget() -> None:
        while ring._groups:
            ring._drop_oldest()

    for name, events in (("start", [started()]), ("propose", held_call(KEY)), ("other", [proposed("y0")])):
        log.write(partition, KEY, name, *events)
    forget()
    log.write(partition, KEY, "decide", decided(hold_of(KEY)), released())
    for number in range(60):
        log.write(partition, KEY, f"z{number}", proposed(f"z{number}"))
    reader = Pausing()
    catching_up = asyncio.create_task(site.caught_up(channels, cursor, reader))
    async with asyncio.timeout(10):
        while reader.has_room:
            await asyncio.sleep(0.001)
    log.write(partition, KEY, "end", c.ToolCallCancelled(call_id="c1", reason=""))
    for number in range(60):
        log.write(partition, KEY, f"w{number}", proposed(f"w{number}"))
    forget()
    reader.has_room = True
    await catching_up
    assert by_lane(reader.messages) == by_lane(whole.messages)
