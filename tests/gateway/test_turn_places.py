"""Where a turn's stream goes on from the id of any event of its conversation: with what is the turn's alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.live.cursor import ALL_GIVEN, Vector, mark_of
from gateway.live.live import Live, lane_of
from gateway.problems import Problem
from gateway.rest import turn_past
from gateway.rest.turn_past import past_of
from gateway.shares.views_wait import ViewsWait
from gateway.sockets.chat import ChatEvents
from projections.queries import resources
from projections.queries.moment import Moment
from projections.queries.views import Views, open_views
from projections.store.urls import open_view
from schemas.events import conversations as v
from schemas.headers import read_event
from schemas.message import Message
from schemas.record import Event
from schemas.refusals import Refusal
from schemas.topics import partition_of
from tests.gateway.facts import new_live, new_work
from tests.gateway.test_turn_past import BOT
from tests.projections.filling import Filler
from tests.projections.folding import KEY
from tests.projections.histories import LogBuilder, started

PARTITION = partition_of(KEY, 3)
LANE = lane_of(PARTITION)
OWNER = (BOT.tenant, BOT.project, "run-1")


def claimed(turn_id: str, attempt_id: str) -> v.TurnClaimed:
    return v.TurnClaimed(turn_id=turn_id, attempt_id=attempt_id, lease_until_ms=9, by="bot")


def said(turn_id: str, attempt_id: str, number: int) -> v.ReplyPosted:
    return v.ReplyPosted(
        turn_id=turn_id,
        attempt_id=attempt_id,
        number=number,
        text=f"{turn_id}{number}",
        details="{}",
        lease_until_ms=9,
        by="bot",
    )


# The second message waits for the first one's turn; and its turn is claimed again, by another attempt.
STORY: list[list[Message]] = [
    [started()],
    [v.MessageSent(turn_id="m", text="one", by="rita")],
    [v.MessageSent(turn_id="n", text="two", by="rita")],
    [claimed("m", "a")],
    [said("m", "a", 1)],
    [said("m", "a", 2)],
    [v.TurnEnded(turn_id="m", outcome="completed", error="", by="bot")],
    [v.MessageSent(turn_id="o", text="three", by="rita")],
    [claimed("n", "b")],
    [said("n", "b", 1)],
    [v.TurnYielded(turn_id="n", cause="stopped", hold_id="", by="bot")],
    [claimed("n", "c")],
    [said("n", "c", 2)],
]


class Site:
    """A gateway in whose memory is all of the log or little of it, and views that have all of it."""

    def __init__(self, views: Views, events: list[Event]) -> None:
        self.views, self.events = views, events
        self.live: Live = new_live()[0]
        self.live.take(LANE, events, events[-1].offset + 1)
        self.are_views_away = False

    def forget(self) -> None:
        ring = self.live.ring
        while ring._groups:
            ring._drop_oldest()

    async def goes_on(self, turn_id: str, offset: int) -> bool:
        """Whether a stream of a turn shows what comes next in the conversation, from the id of an event."""
        gate = SimpleNamespace(live=self.live, partitions=3, work=new_work())
        context: Any = SimpleNamespace(
            actor=BOT, gate=gate, gateway=None, ask_views=self._ask_views, views_wait=ViewsWait()
        )
        turn = self.views.read_now(lambda now: resources.turn(now, *OWNER, turn_id))[0]
        assert turn is not None
        offsets, marks = list(self.live.position.offsets), list(self.live.position.marks)
        at = next(event for event in self.events if event.offset == offset)
        offsets[LANE], marks[LANE] = offset, mark_of(at.meta.event_id)
        after, shown = Vector(tuple(offsets), tuple(marks), given=ALL_GIVEN), ChatEvents()
        with ExitStack() as taken:
            assert await past_of(context, turn, shown, after, self.events[-1].offset, taken) is None
        return shown.event({"type": "hold_resolved", "cursor": "x", "hold_id": "h"}) != b""

    async def _ask_views(self, ask: Callable[[Moment], Any]) -> Any:
        if self.are_views_away:
            raise Problem(Refusal.UNAVAILABLE, "no database")
        return self.views.read_now(ask)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    log = LogBuilder(3).claim_all()
    for bodies in STORY:
        log.append(KEY, bodies)
    url = f"sqlite:///{tmp_path / 'views.db'}"
    store = open_view(url)
    Filler(store).fill(log)
    store.close()
    views = open_views(url)
    # The first record is the writer's claim.
    yield Site(views, [read_event(raw) for raw in log.records[PARTITION][1:]])
    views.close()


def place(site: Site, body: type[Any], turn_id: str) -> int:
    """The offset of the first event of a kind in a turn."""
    return next(
        event.offset
        for event in site.events
        if isinstance(event.body, body) and event.body.turn_id == turn_id
    )


@pytest.mark.parametrize("is_in_memory", [True, False])
@pytest.mark.parametrize("turn_id", ["n", "o"])
async def test_turn_goes_on_with_what_follows_its_first_claim_from_any_place(
    site: Site, turn_id: str, is_in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However little of the views is read at once.
    monkeypatch.setattr(turn_past, "PAGE_BYTES", 1)
    if not is_in_memory:
        site.forget()
    found = {event.offset: await site.goes_on(turn_id, event.offset) for event in site.events}
    last = site.events[-1].offset
    # The turn of the last message is not claimed yet.
    first = place(site, v.TurnClaimed, turn_id) if turn_id == "n" else last + 1
    assert found == {offset: offset >= first for offset in found}
    assert place(site, v.MessageSent, turn_id) < first


async def test_memory_alone_tells_where_a_turn_goes_on(site: Site) -> None:
    site.are_views_away = True
    claim = place(site, v.TurnClaimed, "n")
    assert [await site.goes_on("n", claim + step) for step in (-1, 0, 1)] == [False, True, True]
    site.forget()
    # What is shown to a reader who cannot be told apart would be a guess.
    with pytest.raises(Problem) as refused:
        await site.goes_on("n", claim - 1)
    assert refused.value.code is Refusal.UNAVAILABLE
