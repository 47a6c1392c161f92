"""What one subject may take of the process for what it is sent, and for rows that are looked up for it."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.live.reader import Subject
from gateway.problems import Problem
from gateway.shares.work import QUESTIONS_AT_ONCE, SENT_BURST_S, Work, processor_s
from gateway.views import GatewayViews
from projections.queries.views import Positions
from projections.store.port import ViewUnavailable
from schemas.refusals import Refusal
from schemas.topics import Topics
from tests.gateway.facts import new_work

ANNA, BOT = ("acme", "anna"), ("acme", "bot")
HOLD = Subject("hold", "acme", "books", "", "h1")
PATIENCE_S = 0.2


async def test_case_30_sockets_of_one_subject_are_sent_no_more_than_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work, now_s = new_work(), 0.0
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr("gateway.shares.work.processor_s", lambda: now_s)

    async def send(owner: tuple[str, str], seconds: float) -> None:
        nonlocal now_s
        now_s += seconds
        await work.may_send(owner)
        sent.append(owner)

    await work.sent(ANNA, lambda: send(ANNA, SENT_BURST_S / 2))
    long = partial(send, ANNA, 1000 * SENT_BURST_S)
    sending = [asyncio.create_task(work.sent(ANNA, long)) for _ in range(2)]
    await asyncio.sleep(0)
    await work.sent(BOT, lambda: send(BOT, SENT_BURST_S / 2))
    # A step is counted at its end: the first of the two is sent, and the other waits.
    assert sent == [ANNA, ANNA, BOT]
    for task in sending:
        task.cancel()
    done, waiting = await asyncio.gather(*sending, return_exceptions=True)
    assert (done, type(waiting)) == (None, asyncio.CancelledError)


async def test_what_others_send_a_subject_delays_its_requests_and_refuses_none() -> None:
    work = new_work()
    for _ in range(1000):
        work.handed(ANNA, 0.1)
    await work.admit(ANNA)
    assert work.spend(BOT, 0.0) == 0.0


async def test_case_30_work_of_a_caller_who_leaves_is_charged_and_keeps_its_turn_to_its_end() -> None:
    work, go_on, began = (
        Work(share=0.5, burst_s=1e-6, patience_s=PATIENCE_S),
        threading.Event(),
        threading.Event(),
    )

    def long() -> None:
        began.set()
        until = processor_s() + 0.01
        while processor_s() < until:
            pass
        go_on.wait()

    leaving = asyncio.create_task(work.done(ANNA, long))
    await asyncio.to_thread(began.wait)
    leaving.cancel()
    waiting = asyncio.create_task(work.done(ANNA, lambda: None))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not leaving.done()
    assert work._turns.wanted(ANNA) == 2
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert work.spend(ANNA, 0.0) > 0
    await waiting


class Moments:
    """Views whose answers are counted while they are made."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.go_on = asyncio.Event()

    async def read(self, ask: Any) -> tuple[Any, Positions]:
        self.now += 1
        self.most = max(self.most, self.now)
        await self.go_on.wait()
        self.now -= 1
        return None, Positions({}, 0)


def views_over(source: Any) -> GatewayViews:
    return GatewayViews(source, Topics())


async def test_case_30_lookups_of_one_subject_take_half_of_the_connections_at_most() -> None:
    work, moments = new_work(), Moments()
    lookups = views_over(moments).lookups_of(work, ANNA)
    asked = [asyncio.create_task(lookups.find(HOLD)) for _ in range(20)]
    asked.append(asyncio.create_task(views_over(moments).lookups_of(work, BOT).find(HOLD)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert moments.most == QUESTIONS_AT_ONCE + 1, "one of them is of another subject"
    moments.go_on.set()
    await asyncio.gather(*asked)
    assert moments.most == QUESTIONS_AT_ONCE + 1


async def test_case_30_subject_far_beyond_its_share_is_looked_up_nothing() -> None:
    work, moments = Work(share=0.5, burst_s=0.1, patience_s=PATIENCE_S), Moments()
    moments.go_on.set()
    work.spend(ANNA, 10.0)
    with pytest.raises(Problem) as refused:
        await views_over(moments).lookups_of(work, ANNA).find(HOLD)
    assert refused.value.code is Refusal.QUOTA
    assert (await views_over(moments).lookups_of(work, BOT).find(HOLD)).row is None
    assert (await views_over(moments).lookups.find(HOLD)).row is None, "the gateway itself is charged nothing"


async def test_client_is_told_nothing_of_the_views_database_and_the_log_says_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = 'connection to server at "10.0.0.5" failed: no role "placet"'

    async def read(ask: Any) -> Any:
        raise ViewUnavailable(f"The view could not be read: {said}")

    with pytest.raises(Problem) as refused:
        await views_over(SimpleNamespace(read=read)).read(lambda moment: None)
    assert (refused.value.code, refused.value.detail) == (Refusal.UNAVAILABLE, ViewUnavailable.public)
    assert said in caplog.text
