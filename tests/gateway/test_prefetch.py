"""Events of executions that are not cached: fetched before they are folded, or completed later."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from gateway.live import completion, prefetch
from gateway.live.completion import Completion
from gateway.live.live import Live
from gateway.live.prefetch import Prefetch
from gateway.live.reader import Found, FoundAll, Named, Reader, Subject
from gateway.live.turns import Agent, TurnKey
from gateway.problems import Problem
from projections.folds.rows import Row
from projections.queries.history import ExecutionState, WantedRows, fold_all
from projections.tables.executions import ExecutionRow
from schemas.events import conversations as v
from schemas.record import Event
from schemas.refusals import Refusal
from schemas.topics import partition_of
from tests.gateway.facts import HELD_CALL, Partition, key_of, new_live, started

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

    def _state(self, before: int = 1_000) -> ExecutionState:
        return fold_all(event for event in self.history if event.offset < before)

    def _check(self) -> None:
        self.reads += 1
        if self.is_away:
            raise Problem(Refusal.UNAVAILABLE, "the views are away")

    async def executions(self, keys: Collection[bytes]) -> Mapping[bytes, ExecutionRow]:
        self._check()
        if self.reads <= self.lag:
            return {}
        row = self._state().execution
        return {} if row is None else {KEY: row}

    async def state_before(
        self, key: bytes, partition: int, offset: int, wanted: WantedRows
    ) -> ExecutionState | None:
        self._check()
        return self._state(offset)

    async def find(self, subject: Subject) -> Found:
        self._check()
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
        return Found(row, dict.fromkeys(range(PARTITIONS), self.history[-1].offset + 1))

    async def requests(self, named: Named) -> FoundAll:
        self._check()
        return FoundAll([], {})


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
    completed: list[tuple[str, Row]] = []

    async def ends() -> list[int]:
        return list(live.read_through)

    task = asyncio.create_task(
        Completion(
            Reader(live, views, ends, PARTITIONS), lambda kind, row: completed.append((kind, row))
        ).run()
    )
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
