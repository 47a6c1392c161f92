"""A gated call that the policy lets through: the answer to its proposal is the leave to run, asked for once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import placet
from tests.sdk.desk import Desk, Resource, ended, granted
from tests.sdk.keeping import Keeping
from tests.sdk.runs import never, pay_in, running
from tests.sdk.scripted import Peer
from tests.sdk.test_tries import given_up, paying


def listening(desk: Desk) -> tuple[Any, list[str]]:
    """A desk's script, and the types of the messages that it hears."""
    script, heard = desk.scripted(), list[str]()

    async def hear(peer: Peer, message: Resource) -> None:
        heard.append(message["type"])
        await desk.frame(peer, message)

    script.on_frame = hear
    return script, heard


async def test_allowed_call_runs_on_the_answer_to_its_proposal() -> None:
    desk, paid = Desk(at_once=True), list[str]()
    script, heard = listening(desk)
    async with running(desk, script) as run:
        assert await paying(run, paid)("c") == "paid c"
    assert (paid, heard.count("propose"), heard.count("consume")) == (["c"], 1, 0)
    (consumption,), (result,) = desk.consumed, desk.results
    assert result["attempt_id"] == consumption["attempt_id"]


async def test_each_run_has_an_attempt_of_its_own() -> None:
    desk, paid = Desk(at_once=True), list[str]()
    async with running(desk) as run:
        pay = paying(run, paid)
        for _ in range(3):
            await pay("c")
    assert paid == ["c", "c", "c"]
    assert len({one["attempt_id"] for one in desk.consumed}) == 3


async def test_held_call_is_consumed_after_its_decision() -> None:
    desk, paid = Keeping(at_once=True, judge=ended(status="held", hold_id="h")), list[str]()
    script, heard = listening(desk)
    async with running(desk, script) as run:
        pay = paying(run, paid)
        waiting = asyncio.ensure_future(pay("c"))
        while not desk.calls:
            await asyncio.sleep(0.01)
        for call in desk.calls.values():
            call.update(granted(call, call["arguments"]))
        assert await waiting == "paid c"
    assert (paid, heard.count("consume")) == (["c"], 1)


@pytest.mark.parametrize("changes", [{"tool_version": "v9"}, {"agent": "other"}])
async def test_leave_for_something_else_is_not_used_and_said_to_have_failed(changes: Resource) -> None:
    def judge(desk: Desk, call: Resource) -> Resource:
        forged = granted(call, call["arguments"]) | changes
        desk.calls[forged["call_id"]] = forged
        return forged

    desk = Desk(at_once=True, judge=judge)
    with pytest.raises(placet.DigestMismatch):
        await pay_in(desk, never)
    (result,) = desk.results
    assert (result["outcome"], result["attempt_id"]) == ("failed", desk.consumed[0]["attempt_id"])
    assert result["error"].startswith("the tool did not run: ")


async def test_call_that_another_process_proposed_and_runs_is_for_a_person() -> None:
    desk, paid = Keeping(at_once=True), list[str]()
    async with running(desk) as run:
        await paying(run, paid)("c")
        (call,) = desk.calls.values()
        call.update(status="consumed", attempt_id="another")
    async with running(desk) as restarted:
        with pytest.raises(placet.OutcomeUnknown):
            await paying(restarted, paid)("c")
    assert paid == ["c"]


async def test_cancelled_with_the_proposal_unanswered_and_made_again_runs_once_under_its_attempt() -> None:
    desk, paid = Keeping(at_once=True, unanswered={"propose"}), list[str]()
    async with running(desk) as run:
        pay = paying(run, paid)
        await given_up(pay("c"))
        assert [call["status"] for call in desk.calls.values()] == ["consumed"]
        desk.unanswered.clear()
        assert await pay("c") == "paid c"
    assert (paid, len(desk.consumed)) == (["c"], 1)
    assert desk.results[0]["attempt_id"] == desk.consumed[0]["attempt_id"]


async def test_leave_that_comes_late_is_used_after_a_sign_of_life() -> None:
    desk, paid = Desk(at_once=True, lease_s=0.2), list[str]()
    script, heard = desk.scripted(), list[str]()

    async def slowly(peer: Peer, message: Resource) -> None:
        heard.append(message["type"])
        if message["type"] == "propose":
            await asyncio.sleep(0.15)
        await desk.frame(peer, message)

    script.on_frame = slowly
    async with running(desk, script) as run:
        assert await paying(run, paid)("c") == "paid c"
    assert heard.index("heartbeat") < heard.index("result")


@pytest.mark.parametrize("code", ["invalid_arguments", "execution_closed", "id_reused"])
async def test_refused_proposal_leaves_nothing_behind(code: str) -> None:
    desk = Desk()
    desk.on_propose = lambda message: (409, {"code": code})  # type: ignore[method-assign]
    async with running(desk) as run:
        with pytest.raises(placet.Refused):
            await run.gated(never)("GB29")
        assert run._tries._unused == {}


async def test_proposal_by_hand_passes_for_a_leave_only_where_it_is_this_attempts() -> None:
    desk = Keeping(at_once=True)
    async with running(desk) as run:
        client = placet.AsyncPlacet.__new__(placet.AsyncPlacet)
        client.channel = run.channel
        mine = await client.propose("invoice-march", "pay", {"a": 1}, call_id="c", attempt_id="mine")
        assert mine.status == "consumed"
        desk.calls["c"]["attempt_id"] = "another"
        desk.on_propose = lambda message: (200, desk.calls["c"])  # type: ignore[method-assign]
        with pytest.raises(placet.NotReleased):
            await client.propose("invoice-march", "pay", {"a": 1}, call_id="c", attempt_id="mine")
