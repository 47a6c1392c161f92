"""What one subject may take of the process, and of the memory that waits for readers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from gateway.operations.plan import Reply
from gateway.problems import Problem
from gateway.rest.request_context import RequestContext
from gateway.settings import Limits
from gateway.shares.budget import Budget
from gateway.shares.rates import Buckets
from gateway.shares.views_wait import ViewsWait
from gateway.shares.work import QUESTIONS_AT_ONCE, SLICE_S, Work, processor_s
from projections.queries.paging import PageOf
from projections.queries.views import CONNECTIONS
from schemas.refusals import Refusal
from tests.gateway.facts import gate_of, new_outgoing, new_work, taken

ANNA, BOT = ("acme", "anna"), ("acme", "bot")


def slow(row: int) -> dict[str, Any]:
    """A row that takes a quarter of a slice."""
    until = processor_s() + SLICE_S / 4
    while processor_s() < until:
        pass
    return {"row": row}


def test_charge_of_what_was_done_is_paid_off_at_the_rate() -> None:
    buckets = Buckets(per_s=2.0, burst_s=5.0)
    assert buckets.charge("anna", 0.0, 10) == 0.0
    assert buckets.charge("anna", 0.0, 4) == 2.0
    assert buckets.charge("anna", 1.0, 0) == 1.0
    assert buckets.charge("bot", 0.0, 0) == 0.0
    assert len(buckets) == 1


async def test_long_answer_lets_others_through_between_its_slices() -> None:
    gaps: list[float] = []
    writing = asyncio.create_task(_written(new_work(), range(100)))
    while not writing.done():
        started = time.perf_counter()
        await asyncio.sleep(0)
        gaps.append(time.perf_counter() - started)
    assert [orjson.loads(item)["row"] for item in writing.result()] == list(range(100))
    assert len(gaps) >= 15


async def _written(work: Work, rows: range) -> list[bytes]:
    async with work.turn(ANNA):
        return [item async for item in work.written(ANNA, rows, slow)]


async def test_subject_beyond_its_share_waits_then_is_refused_and_another_is_not() -> None:
    work = Work(share=0.5, burst_s=0.1, patience_s=1.0)
    assert work.spend(ANNA, 0.1) == 0.0
    assert work.spend(ANNA, 0.1) == pytest.approx(0.2, abs=0.05)
    started = time.monotonic()
    await work.admit(ANNA)
    assert time.monotonic() - started > 0.1
    work.spend(ANNA, 5.0)
    with pytest.raises(Problem) as refused:
        await work.admit(ANNA)
    assert (refused.value.status, refused.value.code) == (429, "quota")
    assert refused.value.fields["retry_after"] >= 9
    await work.admit(BOT)


async def test_subject_pays_for_the_processor_and_not_for_waiting_for_it() -> None:
    work = Work(share=0.5, burst_s=0.1, patience_s=1.0)
    await work.counted(ANNA, lambda: time.sleep(0.5))
    await work.done(ANNA, lambda: time.sleep(0.5))
    assert work.spend(ANNA, 0.0) == 0.0
    await work.counted(ANNA, lambda: [slow(row) for row in range(400)])
    assert work.spend(ANNA, 0.0) > 0.1


async def test_subject_with_many_slow_questions_leaves_the_views_to_another() -> None:
    work, answered = new_work(), threading.Event()
    with ThreadPoolExecutor(CONNECTIONS) as connections:

        async def read(ask: Callable[[int], str]) -> str:
            return await asyncio.get_running_loop().run_in_executor(connections, ask, 0)

        def slow_question(_: int) -> str:
            assert answered.wait(10)
            return "anna's"

        asked = [asyncio.create_task(work.asked(ANNA, read, slow_question, ViewsWait())) for _ in range(50)]
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            assert await work.asked(BOT, read, lambda _: "bot's", ViewsWait()) == "bot's"
        assert not any(one.done() for one in asked)
        answered.set()
        assert set(await asyncio.gather(*asked)) == {"anna's"}


async def test_questions_of_the_views_are_paid_for() -> None:
    work = Work(share=0.5, burst_s=0.1, patience_s=1.0)

    async def read(ask: Callable[[int], Any]) -> Any:
        return await asyncio.to_thread(ask, 0)

    await work.asked(ANNA, read, lambda _: time.sleep(0.5), ViewsWait())
    assert work.spend(ANNA, 0.0) == 0.0
    await work.asked(ANNA, read, lambda _: [slow(row) for row in range(400)], ViewsWait())
    assert work.spend(ANNA, 0.0) > 0.1
    with pytest.raises(ZeroDivisionError):
        await work.asked(BOT, read, lambda _: [slow(row) for row in range(400)] and 1 // 0, ViewsWait())
    assert work.spend(BOT, 0.0) > 0.1


async def test_work_that_raises_is_paid_for() -> None:
    work = Work(share=0.5, burst_s=0.1, patience_s=1.0)

    def refused() -> None:
        for row in range(400):
            slow(row)
        raise ValueError("refused at its end")

    with pytest.raises(ValueError, match="at its end"):
        await work.counted(ANNA, refused)
    assert work.spend(ANNA, 0.0) > 0.1


async def test_long_steps_on_the_loop_are_paid_for_and_waits_and_short_ones_are_not() -> None:
    work = Work(share=0.5, burst_s=0.1, patience_s=1.0)

    async def steps(rows: int) -> str:
        await asyncio.sleep(0.3)
        for row in range(rows):
            slow(row)
            await asyncio.sleep(0)
        return "answered"

    async def keeps_the_loop() -> None:
        for row in range(400):
            slow(row)
        raise Problem(Refusal.INVALID, "refused at its end")

    assert await work.priced(ANNA, steps(400)) == "answered"
    assert work.spend(ANNA, 0.0) == 0.0
    with pytest.raises(Problem, match="at its end"):
        await work.priced(ANNA, keeps_the_loop())
    assert work.spend(ANNA, 0.0) > 0.1


async def test_slices_that_are_written_in_a_priced_step_are_paid_for_once() -> None:
    work = Work(share=0.001, burst_s=0.001, patience_s=1.0)
    started = processor_s()
    await work.priced(ANNA, _written(work, range(200)))
    took_s = processor_s() - started
    assert 0.5 < work.spend(ANNA, 0.0) * 0.001 / took_s < 1.3


async def test_priced_work_that_is_cancelled_ends_as_it_would_alone() -> None:
    work, ended = new_work(), asyncio.Event()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await work.priced(ANNA, waits())
    assert ended.is_set()


async def test_turn_begins_once_all_is_paid_that_was_added_while_it_waited() -> None:
    work = Work(share=0.5, burst_s=0.1, patience_s=1.0)
    work.spend(ANNA, 0.2)
    asyncio.get_running_loop().call_later(0.05, work.spend, ANNA, 0.2)
    async with work.turn(ANNA):
        assert work.spend(ANNA, 0.0) == 0.0


async def test_planning_and_answering_over_rest_are_at_the_callers_cost() -> None:
    work = Work(share=0.5, burst_s=0.1, patience_s=1.0)
    claims = SimpleNamespace(actor=SimpleNamespace(tenant=ANNA[0], subject=ANNA[1]))

    async def perform(make: Callable[[], Any]) -> Reply:
        return Reply(200, orjson.dumps(make()))

    gateway: Any = SimpleNamespace(work=work, caught_up=True, gate=gate_of(perform=perform))
    admission: Any = SimpleNamespace(claims=claims)
    request: Any = None
    await RequestContext(request, gateway, admission).perform(lambda: [slow(row) for row in range(400)])  # type: ignore[arg-type, return-value]
    assert work.spend(ANNA, 0.0) > 0.1


async def test_case_30_two_pages_of_a_subject_are_in_memory_while_it_waits_to_have_them_written() -> None:
    work, read = new_work(), list[int]()
    claims = SimpleNamespace(actor=SimpleNamespace(tenant=ANNA[0], subject=ANNA[1]))

    async def read_now(ask: Callable[[int], Any]) -> tuple[Any, None]:
        return ask(len(read)), None

    def ask(number: int) -> PageOf[Any]:
        read.append(number)
        return PageOf([{"number": number}], None, ("number",))

    live = SimpleNamespace(position=SimpleNamespace(cursor=lambda: "cursor"))
    gateway: Any = SimpleNamespace(
        work=work, caught_up=True, gate=gate_of(live=live), views=SimpleNamespace(read_whole=read_now)
    )
    request: Any = SimpleNamespace(query_params={}, url=SimpleNamespace(path="/v1/executions"))
    admission: Any = SimpleNamespace(claims=claims)
    context = RequestContext(request, gateway, admission)
    async with work.turn(ANNA):
        answers = [asyncio.create_task(context.paged(ask, dict)) for _ in range(20)]  # type: ignore[arg-type]
        for _ in range(200):
            await asyncio.sleep(0)
        assert read == [0, 1]
    assert [one.status_code for one in await asyncio.gather(*answers)] == [200] * 20


async def test_turns_are_one_at_a_time_for_a_subject_and_leave_no_trace() -> None:
    work = new_work()
    running: list[tuple[str, str]] = []

    async def answer(owner: tuple[str, str]) -> None:
        async with work.turn(owner):
            assert owner not in running
            running.append(owner)
            await asyncio.sleep(0.001)
            running.remove(owner)

    async with asyncio.TaskGroup() as group:
        for number in range(60):
            group.create_task(answer(("acme", f"s{number % 6}")))
    assert len(work._turns) == 0


def test_budget_is_of_each_subject_and_fair_in_all() -> None:
    budget = Budget(each_bytes=100, total_bytes=120)
    budget.take(ANNA, 100)
    assert not budget.has_room(ANNA, 1)
    assert budget.has_room(BOT, 20)
    budget.take(BOT, 20)
    assert budget.has_room(BOT, 10), "less than a fair part is there for everybody"
    assert not budget.has_room(BOT, 50)
    budget.give_back(ANNA, 100)
    assert budget.has_room(BOT, 80)
    budget.give_back(BOT, 20)
    assert budget.bytes == 0


async def test_sockets_of_one_subject_share_what_may_wait_until_it_was_sent() -> None:
    budget = Budget(each_bytes=10, total_bytes=1_000)
    first, second = new_outgoing(Limits(), budget), new_outgoing(Limits(), budget)
    assert first.push(b"x" * 8)
    assert not second.push(b"x" * 8)
    assert new_outgoing(Limits(), budget, "bot").push(b"x" * 8)
    assert await taken(first) == b"x" * 8
    assert not second.push(b"x" * 8), "it is being sent still"
    first.answer(b"y")
    assert await taken(first) == b"y"
    assert second.push(b"x" * 8)
    first.discard()
    second.discard()
    assert budget.bytes == 8


async def test_pushes_during_a_snapshot_come_behind_it() -> None:
    out = new_outgoing(Limits())
    out.push(b"before")
    out.hold_back("the beginning")
    out.push(b"after")
    out.answer(b"answer")
    assert out.show([b"part 1", b"part 2"])
    frames = [await taken(out) for _ in range(5)]
    assert frames == [b"before", b"answer", b"part 1", b"part 2", b"after"]
    out.discard()
    assert out.budget.bytes == 0


async def test_unread_answers_over_the_budget_end_a_socket() -> None:
    budget = Budget(each_bytes=100_000, total_bytes=1_000_000)
    out = new_outgoing(Limits(), budget)
    for _ in range(100):
        out.answer(b"x" * 1_000)
    assert not out.unread.is_set()
    out.answer(b"x" * 1_000)
    assert out.unread.is_set()


async def test_page_waits_for_its_turn_no_longer_than_a_query() -> None:
    work = Work(share=0.5, burst_s=0.1, patience_s=1.0)
    async with AsyncExitStack() as taken:
        for _ in range(QUESTIONS_AT_ONCE):
            await taken.enter_async_context(work.page(ANNA, ViewsWait()))
        with pytest.raises(Problem) as refused:
            await taken.enter_async_context(work.page(ANNA, ViewsWait(0.05)))
        assert refused.value.code is Refusal.UNAVAILABLE
        async with work.page(BOT, ViewsWait()):
            pass
    async with work.page(ANNA, ViewsWait()):
        pass
