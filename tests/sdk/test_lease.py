"""While a gated function runs, its attempt says so."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from placet import Placet
from placet.errors import AlreadyConsumed, NotReleased
from placet.lease import Lease, beating, consumed
from tests.sdk.desk import Desk
from tests.sdk.runs import running
from tests.sdk.scripted import QUICK, serving

ENOUGH = 3
PATIENCE_S = 60.0


async def until_heard(desk: Desk, count: int = ENOUGH) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while len(desk.heartbeats) < count:
            await asyncio.sleep(0.005)


async def test_gated_function_gives_signs_of_life_while_it_runs_and_none_afterwards() -> None:
    desk = Desk(lease_s=0.05)

    async def send_money(recipient: str) -> str:
        await until_heard(desk)
        return recipient

    async with running(desk) as run:
        assert await run.gated(send_money)("GB29") == "GB29"
        heard = len(desk.heartbeats)
        await asyncio.sleep(0.1)
    assert len(desk.heartbeats) == heard
    assert {one["attempt_id"] for one in desk.heartbeats} == {desk.consumed[0]["attempt_id"]}


async def test_gated_function_that_blocks_its_thread_gives_signs_of_life() -> None:
    desk = Desk(lease_s=0.05)

    def send_money(recipient: str) -> str:
        give_up_at = time.monotonic() + PATIENCE_S
        while len(desk.heartbeats) < ENOUGH and time.monotonic() < give_up_at:
            time.sleep(0.005)
        return recipient

    def blocking(url: str) -> None:
        client = Placet(url, token="t", agent="billing-bot", patience=QUICK)
        with client, client.execution(id="invoice-march") as run:
            run.gated(send_money)("GB29")

    async with serving(desk.scripted()) as served:
        await asyncio.to_thread(blocking, served.url)
    assert len(desk.heartbeats) >= ENOUGH


async def test_gated_function_of_a_gateway_that_asks_for_none_gives_no_sign() -> None:
    desk = Desk()

    async def send_money(recipient: str) -> None:
        await asyncio.sleep(0.05)

    async with running(desk) as run:
        await run.gated(send_money)("GB29")
    assert desk.heartbeats == []


async def test_gated_function_whose_lease_has_ended_runs_on_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refused = {"status": 409, "code": "not_released", "detail": "the call is outcome_unknown"}
    desk = Desk(lease_s=0.02, refuse_heartbeat=[refused])

    async def send_money(recipient: str) -> str:
        await until_heard(desk, 1)
        await asyncio.sleep(0.1)
        return recipient

    with caplog.at_level(logging.WARNING, "placet.lease"):
        async with running(desk) as run:
            assert await run.gated(send_money)("GB29") == "GB29"
    assert len(desk.heartbeats) == 1
    assert [record.name for record in caplog.records] == ["placet.lease"]
    assert desk.results[0]["outcome"] == "succeeded"


async def test_sign_of_life_that_came_too_early_is_followed_by_another_soon() -> None:
    loop, said = asyncio.get_running_loop(), list[float]()
    answers = ["t1", "t1", "t2"]

    async def renew() -> dict[str, str]:
        said.append(loop.time())
        if len(said) > len(answers):
            await asyncio.Event().wait()
        return {"lease_until": answers[len(said) - 1]}

    beats = asyncio.create_task(beating(Lease(0.2, None, loop.time()), renew))
    async with asyncio.timeout(PATIENCE_S):
        while len(said) <= len(answers):
            await asyncio.sleep(0.01)
    beats.cancel()
    first, early, second, third = said
    assert early - first > second - early, "the second changed nothing, so the next came soon"
    assert third - second > second - early


class Slow:
    """A gateway whose answers come late, one after the other."""

    def __init__(self, *delays_s: float, **changes: object) -> None:
        self.delays_s = list(delays_s)
        self.call = {"status": "consumed", "attempt_id": "mine", "lease_seconds": 0.2, **changes}
        self.signs = 0

    async def consume(self) -> object:
        await asyncio.sleep(self.delays_s.pop(0))
        return self.call

    async def renew(self) -> object:
        self.signs += 1
        return await self.consume()


@pytest.mark.parametrize(("delays_s", "signs"), [((0.0,), 0), ((0.3, 0.0), 1), ((0.3, 0.3, 0.0), 2)])
async def test_late_answer_to_a_consumption_is_a_leave_to_run_once_a_sign_of_life_was_taken(
    delays_s: tuple[float, ...], signs: int
) -> None:
    slow = Slow(*delays_s)
    assert (await consumed(slow.consume, slow.renew, "mine")).answer == slow.call
    assert slow.signs == signs


async def test_late_answer_to_a_consumption_runs_nothing_where_another_has_the_call_since() -> None:
    slow = Slow(0.3)

    async def refused() -> object:
        raise AlreadyConsumed("already_consumed", 409, "another attempt runs this call")

    with pytest.raises(AlreadyConsumed):
        await consumed(slow.consume, refused, "mine")


async def test_answers_that_are_always_late_run_nothing() -> None:
    slow = Slow(*[0.15] * 4)
    with pytest.raises(NotReleased, match="longer than half"):
        await consumed(slow.consume, slow.renew, "mine")


@pytest.mark.parametrize("changes", [{"status": "released"}, {"status": "failed"}, {"attempt_id": "another"}])
async def test_yes_to_a_consumption_that_is_about_no_run_of_the_attempt_is_not_believed(
    changes: dict[str, str],
) -> None:
    slow = Slow(0.0, **changes)
    with pytest.raises(NotReleased, match="does not confirm a run of this attempt"):
        await consumed(slow.consume, slow.renew, "mine")
