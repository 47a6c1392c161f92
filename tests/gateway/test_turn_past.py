"""What a stream of a turn's past keeps in memory, and has counted, while its reader does not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message as Sent

from gateway.problems import Problem
from gateway.rest import turn_past
from gateway.rest.request_context import OWNER
from gateway.rest.turn_past import TurnPast, begun
from gateway.rest.unread_responses import UnreadResponseLimit
from gateway.service.assembly import PASTS_AT_ONCE
from gateway.shares.budget import Budget
from gateway.shares.open_limit import OpenLimit
from gateway.shares.views_wait import ViewsWait
from gateway.sockets.chat import ChatEvents
from projections.queries import resources
from projections.queries.moment import Moment
from projections.queries.views import Views, open_views
from projections.store.urls import open_view
from projections.tables.conversations import TurnRow
from schemas.actor import Actor
from schemas.events import conversations as v
from schemas.topics import partition_of
from tests.gateway.facts import new_live, new_work
from tests.projections.filling import Filler
from tests.projections.folding import KEY
from tests.projections.histories import LogBuilder, started

MIB = 1024 * 1024
REPLIES = 60
TEXTS = [f"reply {number}" for number in range(1, REPLIES + 1)]
DETAILS = '{"a":"%s"}' % ("x" * 240_000)
BOT = Actor(subject="bot", tenant="acme", project="main", roles=("agent",), agent="billing-bot")
WHO = (BOT.tenant, BOT.subject)


@pytest.fixture
def views(tmp_path: Path) -> Iterator[Views]:
    """A turn with 14 MB of replies, each a command of its own."""
    log = LogBuilder(3).claim_all()
    log.append(KEY, [started()])
    log.append(KEY, [v.MessageSent(turn_id="m", text="hello", by="rita")])
    log.append(KEY, [v.TurnClaimed(turn_id="m", attempt_id="a", lease_until_ms=9, by="bot")])
    for number, text in enumerate(TEXTS, 1):
        reply = v.ReplyPosted(
            turn_id="m",
            attempt_id="a",
            number=number,
            text=text,
            details=DETAILS,
            lease_until_ms=9,
            by="bot",
        )
        log.append(KEY, [reply])
    log.append(KEY, [v.TurnEnded(turn_id="m", outcome="completed", error="", by="bot")])
    url = f"sqlite:///{tmp_path / 'views.db'}"
    store = open_view(url)
    Filler(store).fill(log)
    store.close()
    opened = open_views(url)
    yield opened
    opened.close()


class Readers:
    """The streams of one subject at a gateway whose views have all of the log."""

    def __init__(self, views: Views, subject_bytes: int = 32 * MIB) -> None:
        self.budget = Budget(subject_bytes, 256 * MIB)
        self.views = views
        work = new_work()
        self.gateway = SimpleNamespace(
            budget=self.budget, past_limit=OpenLimit(PASTS_AT_ONCE, "too many"), work=work
        )
        self.gate = SimpleNamespace(live=new_live()[0], partitions=3, work=work)

    def past(self) -> TurnPast:
        async def ask_views(ask: Callable[[Moment], Any]) -> Any:
            return self.views.read_now(ask)

        context: Any = SimpleNamespace(
            actor=BOT, gate=self.gate, gateway=self.gateway, ask_views=ask_views, views_wait=ViewsWait()
        )
        owner = (BOT.tenant, BOT.project, "run-1")
        turn: TurnRow | None = self.views.read_now(lambda now: resources.turn(now, *owner, "m"))[0]
        assert turn is not None
        shown = ChatEvents()
        shown.follow("m", is_ours=False)
        past = TurnPast(context, turn, shown, None)
        positions = self.views.read_now(lambda now: None)[1]
        past.through = positions.executions[partition_of(KEY, 3)] - 1
        return past


async def test_past_is_made_event_by_event_and_counted_until_it_is_read(views: Views) -> None:
    readers = Readers(views)
    past, found, most = readers.past(), b"", 0
    async with aclosing(past.events()) as events:
        async for event in events:
            most = max(most, readers.budget.bytes)
            assert readers.budget.bytes > len(event)
            found += event[:200] + event[-400:]
    # A page, the command that goes beyond it, the rows that are kept, and the event.
    assert most < turn_past.PAGE_BYTES + 4 * len(DETAILS)
    assert [text in found.decode() for text in TEXTS] == [True] * REPLIES
    assert b"event: complete" in found
    assert readers.budget.bytes == 0


async def test_past_that_is_never_read_gives_its_bytes_and_its_place_back(views: Views) -> None:
    readers = Readers(views)
    past = readers.past()
    events = await begun(past.events())
    assert events is not None
    assert readers.budget.bytes > len(DETAILS)
    # The stream ends before it was begun: nothing runs in it any more.
    await events.aclose()
    past.taken.close()
    assert (readers.budget.bytes, len(readers.gateway.past_limit)) == (0, 0)


async def test_case_30_past_of_a_few_streams_of_one_subject_at_once(views: Views) -> None:
    readers = Readers(views)
    pasts = [readers.past() for _ in range(PASTS_AT_ONCE)]
    streams = [await begun(past.events()) for past in pasts]
    assert readers.budget.bytes < PASTS_AT_ONCE * MIB
    with pytest.raises(Problem) as refused:
        await begun(readers.past().events())
    assert (refused.value.status, refused.value.code) == (429, "quota")
    assert None not in streams
    pasts[0].taken.close()
    assert await begun(readers.past().events()) is not None


async def test_case_30_past_ends_where_too_much_of_its_subject_is_unread(views: Views) -> None:
    readers = Readers(views, MIB)
    events = await begun(readers.past().events())
    assert events is not None
    await anext(events)
    with ExitStack() as others:
        others.enter_context(readers.budget.holding(("other", "bot"))).keep(MIB)
        others.enter_context(readers.budget.holding(WHO)).keep(MIB - readers.budget.bytes % MIB)
        with pytest.raises(Problem) as refused:
            async for _ in events:
                pass
    assert (refused.value.status, refused.value.code) == (429, "quota")
    assert readers.budget.bytes == 0


async def test_part_of_a_stream_counts_until_the_next_is_sent_or_it_ends() -> None:
    budget, parts, counted = Budget(MIB, MIB), [b"x" * 100_000, b"y" * 10], list[int]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            counted.append(budget.bytes)
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Sent) -> None:
        pass

    async def receive() -> Sent:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "state": {OWNER: WHO}, "headers": [], "method": "GET", "path": "/agent/chat"}
    await UnreadResponseLimit(app, budget, 1.0)(scope, receive, send)
    assert (counted, budget.bytes) == ([100_000, 10], 0)
