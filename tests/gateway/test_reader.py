from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.live import reader as reader_module
from gateway.live.live import Live
from gateway.live.reader import Found, FoundAll, Named, Reader, Subject
from gateway.operations.views import as_opened
from gateway.problems import Problem
from projections.folds.rows import Row
from schemas.actor import Actor
from schemas.refusals import Refusal
from schemas.topics import partition_of
from tests.gateway.facts import HELD_CALL, Partition, key_of, new_live, started

PARTITIONS = 3
KEY = key_of("e1")
HOME = partition_of(KEY, PARTITIONS)
EXECUTION = Subject("execution", "acme", "books", "e1", "e1")
HOLD = Subject("hold", "acme", "books", "", "h1")


@dataclass
class View:
    """The views: what they say changes between one look and the next."""

    says: list[Callable[[], Found]] = field(default_factory=list)
    looks: int = 0

    async def find(self, subject: Subject) -> Found:
        self.looks += 1
        return self.says[min(self.looks, len(self.says)) - 1]()

    async def requests(self, named: Named) -> FoundAll:
        found = await self.find(HOLD)
        return FoundAll([] if found.row is None else [found.row], found.positions)


def _row() -> Row:
    live, _ = new_live()
    Partition(live).write(KEY, "start", started())
    return live.cache.executions.get(KEY) or {}


def _read_to(offset: int) -> dict[int, int]:
    return dict.fromkeys(range(PARTITIONS), offset)


def _reader(live: Live, view: View, ends: Sequence[int] = (0, 0, 0, 0)) -> Reader:
    async def end_offsets() -> Sequence[int]:
        return ends

    return Reader(live, view, end_offsets, PARTITIONS)


async def test_read_row_at_hand_asks_nobody() -> None:
    live, _ = new_live()
    view = View()
    Partition(live, HOME).write(KEY, "start", started())
    assert (await _reader(live, view).read(EXECUTION))["execution_id"] == "e1"
    assert view.looks == 0


async def test_read_row_of_the_views_is_kept_and_continued() -> None:
    live, _ = new_live()
    row = _row()
    live.read_through[HOME + 1] = 2
    live.ring.gone_through[HOME + 1] = 1
    view = View([lambda: Found(row, _read_to(2))])
    assert await _reader(live, view).read(EXECUTION) == row
    partition = Partition(live, HOME)
    partition.events(KEY, "skipped", [started()])
    partition.write(KEY, "propose", *HELD_CALL)
    assert (live.cache.executions.get(KEY) or {})["calls"] == 1


async def test_read_views_behind_the_tail_are_waited_for() -> None:
    live, _ = new_live()
    partition = Partition(live, HOME)
    partition.write(KEY, "start", started())
    live.cache.executions.passing.clear()
    newer = _row()
    view = View([lambda: Found(None, _read_to(0)), lambda: Found(newer, _read_to(2))])
    assert await _reader(live, view).read(EXECUTION) == newer
    assert view.looks == 2


async def test_read_views_ahead_of_the_tail_wait_for_the_tail() -> None:
    live, _ = new_live()
    row = _row()
    view = View([lambda: Found(row, _read_to(2))])
    reading = asyncio.create_task(_reader(live, view).read(EXECUTION))
    while not view.looks:
        await asyncio.sleep(0)
    assert not reading.done()
    Partition(live, HOME).write(KEY, "start", started())
    assert (await reading)["version"] == 1


async def test_read_what_is_nowhere_is_not_found() -> None:
    live, _ = new_live()
    view = View([lambda: Found(None, _read_to(5))])
    for subject in (EXECUTION, HOLD, Subject("request", "acme", "books", "", "r1")):
        with pytest.raises(Problem) as caught:
            await _reader(live, view).read(subject)
        assert caught.value.code is Refusal.NOT_FOUND


def _request(execution_id: str, agent: str, hold_id: str) -> Row:
    names = {"tenant": "acme", "project": "books", "execution_id": execution_id, "request_id": "r1"}
    return {**names, "agent": agent, "hold_id": hold_id, "status": "open", "call_id": None}


async def test_requests_of_one_id_are_those_of_the_views_and_those_since() -> None:
    live, _ = new_live()
    live.cache.put_hold(_request("e1", "billing", "h1"))
    live.cache.put_hold(_request("e2", "mail", "h2"))
    # The views have not read as far as the ring goes back at first.
    old = _request("e0", "billing", "h0")
    live.ring.gone_through[HOME + 1] = 5
    view = View([lambda: Found(None, _read_to(0)), lambda: Found(old, _read_to(6))])
    found = await _reader(live, view).requests(Named("acme", "books", "r1", None))
    assert {row["hold_id"] for row in found} == {"h0", "h1", "h2"}
    found = await _reader(live, view).requests(Named("acme", "books", "r1", "billing"))
    assert {row["hold_id"] for row in found} == {"h0", "h1"}


async def test_read_what_another_gateway_began_just_now_is_found() -> None:
    live, _ = new_live()
    view = View([lambda: Found(None, _read_to(0))])
    ends = [0, 0, 0, 0]
    ends[HOME + 1] = 2
    reading = asyncio.create_task(_reader(live, view, ends).read(EXECUTION))
    while not view.looks:
        await asyncio.sleep(0)
    Partition(live, HOME).write(KEY, "start", started())
    assert (await reading)["execution_id"] == "e1"


async def test_read_views_too_far_behind_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "FETCH_TIMEOUT_S", 0.05)
    live, _ = new_live()
    Partition(live, HOME).write(KEY, "start", started())
    live.cache.executions.passing.clear()
    view = View([lambda: Found(None, _read_to(0))])
    with pytest.raises(Problem) as caught:
        await _reader(live, view).read(EXECUTION)
    assert caught.value.code is Refusal.UNAVAILABLE


async def test_at_hand_hold_of_another_project_is_not_there() -> None:
    live, _ = new_live()
    Partition(live).write(KEY, "propose", started(), *HELD_CALL)
    reader = _reader(live, View())
    assert reader.at_hand(HOLD) is not None
    assert reader.at_hand(HOLD._replace(tenant="other")) is None
    assert reader.at_hand(HOLD._replace(project="other")) is None


async def test_caught_up_row_is_given_once_everything_that_the_broker_has_was_read() -> None:
    live, _ = new_live()
    partition = Partition(live, HOME)
    partition.write(KEY, "start", started())
    ends = [0, 0, 0, 0]
    ends[HOME + 1] = live.read_through[HOME + 1] + len(HELD_CALL)
    reading = asyncio.create_task(_reader(live, View(), ends).caught_up(EXECUTION))
    await asyncio.sleep(0.01)
    assert not reading.done()
    partition.write(KEY, "propose", *HELD_CALL)
    assert (await reading)["calls"] == 1


async def test_caught_up_row_is_unavailable_where_the_log_is_not_read_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader_module, "FETCH_TIMEOUT_S", 0.02)
    live, _ = new_live()
    Partition(live, HOME).write(KEY, "start", started())
    reader = _reader(live, View(), (9, 9, 9, 9))
    for asked in (reader.caught_up(EXECUTION), reader.definitions_caught_up()):
        with pytest.raises(Problem) as caught:
            await asked
        assert caught.value.code is Refusal.UNAVAILABLE


async def test_stored_row_is_that_of_the_views_once_they_have_it() -> None:
    live, _ = new_live()
    Partition(live, HOME).write(KEY, "start", started())
    row = {**_row(), "request": "as the views have it"}
    view = View([lambda: Found(None, _read_to(0)), lambda: Found(row, _read_to(1))])
    assert (await _reader(live, view).stored(EXECUTION))["request"] == "as the views have it"
    assert view.looks == 2
    assert live.cache.executions.get(KEY) != row


async def test_stored_row_that_the_views_do_not_have_in_time_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader_module, "FETCH_TIMEOUT_S", 0.05)
    live, _ = new_live()
    with pytest.raises(Problem) as caught:
        await _reader(live, View([lambda: Found(None, _read_to(0))])).stored(HOLD)
    assert caught.value.code is Refusal.UNAVAILABLE


async def test_hold_that_opened_before_its_turn_was_cached_is_served_as_the_views_have_it() -> None:
    live, _ = new_live()
    hold: Any = {
        "hold_id": "h1",
        "request": None,
        "must_read": 0,
        "badges": "[]",
        "senders": None,
        "votes": "[]",
    }
    told: Any = {"request": "rm -rf /prod", "must_read": 1, "badges": '["bidi"]', "senders": '["anna"]'}
    whole: Any = {**hold, **told}
    view = View([lambda: Found({**whole, "votes": "older"}, _read_to(1))])
    gate: Any = SimpleNamespace(reader=_reader(live, view))
    actor = Actor(subject="rita", tenant="acme", project="books", roles=("reviewer",))
    assert await as_opened(gate, actor, hold) == whole
    assert await as_opened(gate, actor, whole) == whole
    assert view.looks == 1
