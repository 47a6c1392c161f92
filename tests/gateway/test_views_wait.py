"""Requests at views that do not answer: refused within one time, whatever they wait for, and told what that was."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.live.cursor import Vector
from gateway.problems import Problem
from gateway.rest.request_context import RequestContext
from gateway.shares.views_wait import ViewsWait
from gateway.shares.work import QUESTIONS_AT_ONCE, Work
from projections.queries.paging import PageOf
from projections.queries.views import ANSWER_S, Positions
from schemas.refusals import Refusal
from tests.gateway.facts import gate_of, new_work

WITHIN_S = 1.0
# The machine may be busy.
MARGIN_S = 0.8
ALONE = "the views have not answered for 1 s: try again in a moment"
Read = Callable[[Callable[[Any], Any]], Awaitable[Any]]


async def frozen(ask: Callable[[Any], Any]) -> Any:
    """Views whose database is frozen."""
    await asyncio.Event().wait()


async def slow(ask: Callable[[Any], Any]) -> Any:
    """Views that answer each query, but need more than half of the time for it."""
    await asyncio.sleep(WITHIN_S * 0.6)
    return ask(None), Positions({0: 9}, 9)


def reader(work: Work, read: Read, **query: str) -> RequestContext:
    """A request of one subject."""
    key = SimpleNamespace(read=lambda text: Vector((0, 0), ()))

    async def reached(vector: Vector, within_s: float) -> bool:
        return True

    live = SimpleNamespace(position=SimpleNamespace(cursor=lambda: "cursor", key=key), reached=reached)
    gateway: Any = SimpleNamespace(
        work=work, caught_up=True, gate=gate_of(live=live), views=SimpleNamespace(read_whole=read)
    )
    request: Any = SimpleNamespace(query_params=query, url=SimpleNamespace(path="/v1/executions"))
    authentication: Any = SimpleNamespace(
        claims=SimpleNamespace(actor=SimpleNamespace(tenant="acme", subject="anna"))
    )
    return RequestContext(request, gateway, authentication, ViewsWait(WITHIN_S))


def one_row(_: Any) -> PageOf[Any]:
    return PageOf([{"number": 1}], None, ("number",))


async def refused(context: RequestContext) -> str:
    """What a request for a page is told, in time."""
    since = time.monotonic()
    with pytest.raises(Problem) as problem:
        await context.paged(one_row, dict)
    assert time.monotonic() - since < WITHIN_S + MARGIN_S
    assert (problem.value.code, problem.value.fields["retry_after"]) == (Refusal.UNAVAILABLE, 1)
    return problem.value.detail


async def test_only_reader_of_frozen_views_is_told_of_no_earlier_ones() -> None:
    assert await refused(reader(new_work(), frozen)) == ALONE


async def test_reader_behind_others_waits_no_longer_than_they_do_and_is_told_of_them() -> None:
    work = new_work()
    first = [asyncio.create_task(refused(reader(work, frozen))) for _ in range(QUESTIONS_AT_ONCE)]
    await asyncio.sleep(WITHIN_S / 2)
    # Its turn comes when half of its time is over, and then the views do not answer it either.
    behind = asyncio.create_task(refused(reader(work, frozen)))
    assert await asyncio.gather(*first) == [ALONE] * QUESTIONS_AT_ONCE
    told = await behind
    assert told.startswith("the views have not answered for 1 s, of which this request has waited 0.")
    assert told.endswith(" s for earlier ones of its subject: try again in a moment")


async def test_reader_with_a_cursor_waits_for_the_views_and_then_for_the_page_no_longer_in_all() -> None:
    assert await refused(reader(new_work(), slow, after="cursor")) == ALONE
    assert (await reader(new_work(), slow).paged(one_row, dict)).status_code == 200


async def test_reader_in_steps_waits_for_each_as_long() -> None:
    context = reader(new_work(), slow)
    for _ in range(2):
        await context.ask_views(lambda _: None)
        context.views_wait.renew()
    await context.ask_views(lambda _: None)
    with pytest.raises(Problem, match="have not answered"):
        await context.ask_views(lambda _: None)


def test_request_waits_as_long_as_a_query() -> None:
    assert ViewsWait()._left_s == ANSWER_S == 10.0
