"""Events of executions that are not cached: fetched before they are folded, or completed later."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest

from gateway.live import completion, prefetch
from gateway.live import reader as reader_module
from gateway.live.cache import Incomplete
from gateway.live.completion import Completion, NewRow
from gateway.live.live import Live
from gateway.live.prefetch import Prefetch, StoredExecutions
from gateway.live.reader import Found, FoundAll, Named, Reader, Subject
from gateway.live.turns import Agent, TurnKey
from gateway.problems import Problem
from projections.folds.rows import Row
from projections.queries.history import ExecutionState, WantedRows, fold_all
from schemas.events import conversations as v
from schemas.record import Event
from schemas.refusals import Refusal
from schemas.topics import partition_of
from tests.gateway.facts import (
    HELD_CALL,
    Partition,
    held,
    key_of,
    new_live,
    proposed,
    refused,
    started,
    verdict,
)

KEY = key_of("e1")
PARTITIONS = 3
HOME = partition_of(KEY, PARTITIONS)
SENT = v.MessageSent(turn_id="m1", text="hello", by="uma")


@dataclass
class Views:
    """The views of one execution's events, read up to an offset."""

    history: list[Event] = field(default_factory=list)
    is_away: bool = False
    reads: int = 0
    lag: int = 0
    behind: bytes = b""

    def _state(self, before: int = 1_000) -> ExecutionState:
        return fold_all(event for event in self.history if event.offset < before)

    def _check(self) -> None:
        self.reads += 1
        if self.is_away:
            raise Problem(Refusal.UNAVAILABLE, "the views are away")

    def _positions(self) -> dict[int, int]:
        through = max((event.offset for event in self.history), default=-1)
        return dict.fromkeys(range(PARTITIONS), through + 1)

    async def executions(self, keys: Collection[bytes]) -> StoredExecutions:
        self._check()
        row = self._state().execution
        if row is None or self.reads <= self.lag:
            return StoredExecutions({}, {})
        return StoredExecutions({KEY: row}, self._positions())

    async def state_before(
        self, key: bytes, partition: int, offset: int, wanted: WantedRows
    ) -> ExecutionState | None:
        self._check()
        return self._state(offset)

    async def find(self, subject: Subject) -> Found:
        self._check()
        if subject.key == self.behind:
            return Found(None, dict.fromkeys(range(PARTITIONS), -2))
        state = self._state()
        row: Row | None
        match subject.kind:
            case "execution":
                row = state.execution
            case "turn":
                row = state.turns.get(subject.id)
            case "call":
                row = state.calls.get(subject.id)
            case _:
                row = state.holds.get(subject.id)
        return Found(row, self._positions())

    async def requests(self, named: Named) -> FoundAll:
        self._check()
        rows = [row for row in self._state().holds.values() if row["request_id"] == named.request_id]
        return FoundAll(rows, self._positions())


def quiet_execution() -> tuple[Live, Partition, Views]:
    """A gateway that no longer has an execution, of which the views have the start."""
    live, _ = new_live()
    partition = Partition(live, HOME)
    begun = partition.write(KEY, "start", started())
    live.cache.executions.passing.clear()
    return live, partition, Views(begun)


async def take(live: Live, views: Views, events: Sequence[Event]) -> None:
    await Prefetch(live.cache, views).before(events)
    live.take(HOME + 1, events, events[-1].offset + 1)


def reader_of(live: Live, views: Views) -> Reader:
    async def ends() -> list[int]:
        return list(live.read_through)

    return Reader(live, views, ends, PARTITIONS)


def agent(live: Live) -> Agent:
    return Agent("acme", "books", "billing")


async def test_message_to_an_execution_that_is_not_cached_is_given_to_its_agent() -> None:
    live, partition, views = quiet_execution()
    events = partition.events(KEY, "say", [SENT])
    await take(live, views, events)
    assert live.cache.turns.reserve(agent(live), lambda _: True) == TurnKey(KEY, "m1")
    assert not live.cache.incomplete


async def test_row_is_the_one_before_the_event_though_the_views_are_ahead() -> None:
    live, partition, views = quiet_execution()
    events = partition.events(KEY, "say", [SENT])
    views.history += events
    views.history += partition.events(KEY, "say more", [SENT.model_copy(update={"turn_id": "m2"})])
    await take(live, views, events)
    row = live.cache.executions.get(KEY)
    assert row is not None
    assert row["version"] == events[-1].meta.version


async def test_views_that_are_behind_are_waited_for() -> None:
    live, partition, views = quiet_execution()
    views.lag = 3
    await take(live, views, partition.events(KEY, "propose", HELD_CALL))
    call = live.cache.calls.get((KEY, "c1"))
    assert call is not None
    assert call["senders"] == live.cache.executions.get(KEY)["senders"]  # type: ignore[index]


async def test_execution_stays_while_a_turn_of_it_is_open() -> None:
    live, partition, views = quiet_execution()
    await take(live, views, partition.events(KEY, "say", [SENT]))
    assert KEY in live.cache.executions.pinned
    ended = v.TurnEnded(turn_id="m1", outcome="completed", error="", by="bot")
    partition.write(KEY, "end", ended)
    assert KEY in live.cache.executions.passing


async def test_nothing_is_read_for_executions_that_start_or_are_cached() -> None:
    live, _ = new_live()
    partition, views = Partition(live, HOME), Views()
    await take(live, views, partition.events(KEY, "start", [started(), *HELD_CALL]))
    await take(live, views, partition.events(KEY, "say", [SENT]))
    assert views.reads == 0


async def test_views_that_are_away_do_not_stop_the_tail_and_rows_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(completion, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(prefetch, "RETRY_AFTER_S", 3600.0)
    live, partition, views = quiet_execution()
    views.is_away = True
    first = partition.events(KEY, "say", [SENT])
    await take(live, views, first)
    assert live.cache.turns.reserve(agent(live), lambda _: True) is None
    completed: list[NewRow] = []
    task = asyncio.create_task(Completion(reader_of(live, views), completed.extend).run())
    found: list[TurnKey] = []

    def is_there() -> bool:
        found.extend(filter(None, [live.cache.turns.reserve(agent(live), lambda _: True)]))
        return bool(found)

    waiting = asyncio.create_task(live.watch.until(agent(live), is_there, 20.0))
    views.history += first
    views.is_away = False
    try:
        assert await waiting
    finally:
        task.cancel()
    assert found == [TurnKey(KEY, "m1")]
    assert not live.cache.incomplete
    ((kind, row),) = completed
    assert (kind, row["agent"], row["text"]) == ("turn", "billing", "hello")


@pytest.mark.parametrize("bodies", [[SENT], list(HELD_CALL)])
async def test_no_row_is_made_without_its_execution(bodies: list[v.MessageSent]) -> None:
    live, partition, views = quiet_execution()
    views.is_away = True
    await take(live, views, partition.events(KEY, "begin", bodies))
    assert live.cache.turns.first_open(KEY) is None
    assert live.cache.open_work(KEY) == ([], [])
    assert live.cache.open_holds("acme", "books") == []
    assert {one.kind for one in live.cache.incomplete} == ({"turn"} if bodies == [SENT] else {"call", "hold"})


def test_turn_that_is_fetched_comes_before_a_later_one() -> None:
    live, _ = new_live()
    partition = Partition(live, HOME)
    partition.write(KEY, "start", started())
    partition.write(KEY, "say", SENT)
    first = live.cache.turns.get(TurnKey(KEY, "m1"))
    assert first is not None
    other, _ = new_live()
    other.cache.put_turn(first | {"turn_id": "m2", "log_offset": first["log_offset"] + 5})
    other.cache.put_turn(first)
    turn = other.cache.turns.first_open(KEY)
    assert turn is not None
    assert turn["turn_id"] == "m1"


async def test_hold_that_is_incomplete_is_not_called_missing() -> None:
    live, partition, views = quiet_execution()
    views.is_away = True
    events = partition.events(KEY, "propose", HELD_CALL)
    await take(live, views, events)
    views.is_away = False
    reader = reader_of(live, views)
    reading = asyncio.create_task(reader.read(Subject("hold", "acme", "books", "", "h1")))
    asking = asyncio.create_task(reader.requests(Named("acme", "books", "q1", None)))
    # Several looks at views that are behind: neither says that there is none.
    looks = views.reads
    while views.reads < looks + 6 and not reading.done():
        await asyncio.sleep(0.01)
    assert not reading.done()
    assert not asking.done()
    views.history += events
    assert (await reading)["call_id"] == "c1"
    assert await asking == []


async def test_hold_of_another_project_is_missing_at_once() -> None:
    live, partition, views = quiet_execution()
    views.is_away = True
    await take(live, views, partition.events(KEY, "propose", HELD_CALL))
    views.is_away = False
    with pytest.raises(Problem) as raised:
        await reader_of(live, views).read(Subject("hold", "acme", "other", "", "h1"))
    assert raised.value.code is Refusal.NOT_FOUND


@pytest.mark.parametrize("is_read", [False, True])
async def test_execution_that_was_refused_before_it_started_is_not_waited_for(is_read: bool) -> None:
    live, _ = new_live()
    partition, views = Partition(live, HOME), Views()
    events = partition.events(KEY, "early", [refused()])
    events += partition.events(KEY, "start", [started()])
    events += partition.events(KEY, "say", [SENT])
    if is_read:
        views.history += events
    await take(live, views, events)
    assert views.reads == 0
    assert live.cache.turns.reserve(agent(live), lambda _: True) == TurnKey(KEY, "m1")


async def test_execution_whose_versions_do_not_fit_is_taken_as_the_views_fold_it() -> None:
    """An event of it could not be read: then the number of its events is never the version."""
    live, partition, views = quiet_execution()
    partition.events(KEY, "unreadable", [refused()])
    events = partition.events(KEY, "say", [SENT])
    views.history += events
    await take(live, views, events)
    assert views.reads == 2
    assert live.cache.turns.reserve(agent(live), lambda _: True) == TurnKey(KEY, "m1")


async def test_later_revision_of_an_incomplete_call_does_not_begin_it() -> None:
    live, partition, views = quiet_execution()
    views.is_away = True
    events = partition.events(KEY, "propose", HELD_CALL)
    await take(live, views, events)
    views.is_away = False
    views.history += events
    reader = reader_of(live, views)
    await reader.read(Subject("execution", "acme", "books", "e1"))
    edited = partition.write(KEY, "edit", proposed(revision=2), verdict(), held(hold_id="h2"))
    assert live.cache.calls.get((KEY, "c1")) is None
    assert live.cache.holds.get("h2") is None
    views.history += edited
    call = await reader.read(Subject("call", "acme", "books", "e1", "c1"))
    assert call == fold_all(views.history).calls["c1"]


async def test_readers_are_told_once_of_all_that_was_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "LOOK_EVERY_S", 0.01)
    live, partition, views = quiet_execution()
    views.is_away = True
    calls = [f"c{number}" for number in range(20)]
    events: list[Event] = []
    for name in calls:
        events += partition.events(KEY, name, [proposed(name), verdict(name), held(name, f"h-{name}")])
    await take(live, views, events)
    views.is_away = False
    views.history += events
    told: list[int] = []
    task = asyncio.create_task(Completion(reader_of(live, views), lambda rows: told.append(len(rows))).run())
    async with asyncio.timeout(20):
        while live.cache.incomplete or not told:
            await asyncio.sleep(0.01)
    task.cancel()
    assert told == [2 * len(calls)]
    assert len(live.cache.open_holds("acme", "books")) == len(calls)


async def test_execution_in_which_much_happens_does_not_keep_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(reader_module, "FETCH_TIMEOUT_S", 0.1)
    live, partition, views = quiet_execution()
    views.is_away = True
    events = partition.events(KEY, "say", [SENT])
    await take(live, views, events)
    busy = Incomplete(key_of("busy"), "turn", "m1")
    # The views never have this one: it is tried first in each pass.
    live.cache.incomplete = {busy: events[0]._replace(key=busy.key, partition=2), **live.cache.incomplete}
    views.is_away, views.behind = False, busy.key
    views.history += events
    task = asyncio.create_task(Completion(reader_of(live, views), lambda rows: None).run())
    async with asyncio.timeout(20):
        while list(live.cache.incomplete) != [busy]:
            await asyncio.sleep(0.01)
    task.cancel()
