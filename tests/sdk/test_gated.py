import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

import placet
from placet import AsyncPlacet, gated
from placet.canonical import sha256_hex
from placet.execution import AsyncExecution
from placet.ids import call_id
from tests.sdk.desk import Desk, Resource, digest_of, ended, granted
from tests.sdk.scripted import QUICK, Peer, Scripted, serving


@asynccontextmanager
async def running(
    desk: Desk, script: Scripted | None = None, patience: placet.Patience = QUICK
) -> AsyncIterator[AsyncExecution]:
    async with serving(script or desk.scripted()) as served:
        client = AsyncPlacet(served.url, token="t", agent="billing-bot", patience=patience)
        async with client, client.execution(id="invoice-march", request="Pay it") as run:
            yield run


async def pay_in(desk: Desk, send_money: Any) -> Any:
    async with running(desk) as run:
        return await run.gated(send_money)("GB29")


async def never(recipient: str) -> None:
    raise AssertionError("ran")


async def test_gated_released_runs_between_consumption_and_result() -> None:
    desk = Desk()
    seen: list[str] = []
    async with running(desk) as run:

        @run.gated(annotations={"destructiveHint": True}, reason="the March invoice")
        async def send_money(recipient: str, amount: float) -> str:
            seen.append(f"{len(desk.consumed)} consumed, {len(desk.results)} reported")
            return f"sent {amount} to {recipient}"

        assert await send_money("GB29", 98.70) == "sent 98.7 to GB29"
    proposed = next(iter(desk.calls.values()))
    assert proposed["arguments"] == {"recipient": "GB29", "amount": 98.7}
    assert proposed["annotations"] == {"destructiveHint": True}
    assert proposed["reason"] == "the March invoice"
    assert seen == ["1 consumed, 0 reported"]
    assert desk.consumed[0]["digest"] == proposed["digest"]
    assert desk.results[0]["outcome"] == "succeeded"
    assert desk.results[0]["output"] == "sent 98.7 to GB29"
    assert desk.results[0]["attempt_id"] == desk.consumed[0]["attempt_id"]
    assert desk.finished == [{"outcome": "completed"}]


async def test_gated_calls_have_ids_that_a_restarted_process_makes_again() -> None:
    made: list[list[str]] = []
    for _ in range(2):
        desk = Desk()
        async with running(desk) as run:

            @run.gated
            async def note(text: str) -> None: ...

            for text in ("a", "a", "b"):
                await note(text)
        made.append(list(desk.calls))
    assert made[0] == made[1]
    digests = [sha256_hex(text) for text in (b'{"text":"a"}', b'{"text":"b"}')]
    assert made[0] == [
        call_id("invoice-march", "note", digests[0], 0),
        call_id("invoice-march", "note", digests[0], 1),
        call_id("invoice-march", "note", digests[1], 0),
    ]


async def test_gated_edited_runs_with_the_approved_arguments() -> None:
    def edit(desk: Desk, call: Resource) -> Resource:
        edited = {**call["arguments"], "amount": 10}
        return granted({**call, "revision": 2, "arguments": edited}, edited)

    desk = Desk(judge=edit)
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: str, amount: float) -> float:
            return amount

        assert await send_money("GB29", 98.70) == 10


@pytest.mark.parametrize(
    "forge",
    [
        lambda desk, call: {**granted(call, call["arguments"]), "grant": {"digest": "0" * 64}},
        lambda desk, call: granted(call, {"recipient": "EVIL"}),
        lambda desk, call: {**granted(call, call["arguments"]), "tool_version": "v2"},
        lambda desk, call: {**granted(call, call["arguments"]), "tenant": "other"},
        lambda desk, call: granted({**call, "agent": "other-bot"}, call["arguments"]),
        lambda desk, call: granted({**call, "tool": "other_tool"}, call["arguments"]),
        lambda desk, call: {
            **granted(call, {"recipient": "EVIL"}, revision=2),
            "approved_arguments": {"x": 1},
        },
    ],
)
async def test_gated_released_for_anything_else_does_not_run(forge: Any) -> None:
    desk = Desk(judge=forge)
    with pytest.raises(placet.DigestMismatch):
        await pay_in(desk, never)
    assert desk.consumed == []


@pytest.mark.parametrize("status", ["denied", "expired", "cancelled", "revoked"])
async def test_gated_stopped_raises_denied_with_decision_and_feedback(status: str) -> None:
    decision = {"decision": "reject", "decision_id": "d9", "by": "ada", "feedback": "use the other account"}
    desk = Desk(judge=ended(status=status, decision=decision))
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: str) -> None:
            raise AssertionError("ran")

        with pytest.raises(placet.Denied, match="other account") as caught:
            await send_money("GB29")
    assert caught.value.call.status == status
    assert caught.value.decision is not None
    assert caught.value.decision.by == "ada"
    assert caught.value.feedback == "use the other account"
    assert desk.consumed == []


async def test_gated_stopped_can_return_the_feedback_to_the_model() -> None:
    desk = Desk(judge=ended(status="denied", feedback="not on Fridays"))
    async with running(desk) as run:

        @run.gated(on_denied="return")
        async def send_money(recipient: str) -> str:
            raise AssertionError("ran")

        assert await send_money("GB29") == "not on Fridays"


async def test_gated_held_waits_for_the_pushed_decision() -> None:
    desk = Desk(judge=ended(status="held", hold_id="h1"))
    script = desk.scripted()

    async def hold_then_push(peer: Peer, message: Resource) -> None:
        await desk.frame(peer, message)
        if message["type"] == "propose":
            call = desk.calls[message["body"]["call_id"]]
            decided = granted(call, call["arguments"])
            call.update(decided)
            await peer.say(type="tool_call_decided", cursor="k1", **decided)

    script.on_frame = hold_then_push
    async with running(desk, script) as run:

        @run.gated
        async def send_money(recipient: str) -> str:
            return "sent"

        assert await send_money("GB29") == "sent"
    assert script.asked == []


async def test_gated_held_longer_than_the_timeout_is_still_held_and_then_the_same_call() -> None:
    desk = Desk(judge=ended(status="held"))
    async with running(desk) as run:

        @run.gated(timeout_s=0.1)
        async def send_money(recipient: str) -> str:
            return "sent"

        with pytest.raises(placet.StillHeld):
            await send_money("GB29")
        desk.judge = Desk().judge
        assert await send_money("GB29") == "sent"
    assert len(desk.calls) == 1


async def test_gated_taken_back_before_consumption_waits_for_the_new_decision() -> None:
    desk = Desk(refuse_consumption=[{"code": "not_released", "then": {"status": "held"}}])
    script = desk.scripted()

    async def push_after_the_refusal(peer: Peer, message: Resource) -> None:
        await desk.frame(peer, message)
        if message["type"] == "consume" and not desk.consumed:
            call = desk.calls[message["call_id"]]
            newer = {**call, "revision": 2, "tool_version": "v2"}
            newer["digest"] = digest_of(newer, call["arguments"])
            call.update(granted(newer, call["arguments"]))
            await peer.say(type="tool_call_decided", cursor="k2", **call)

    script.on_frame = push_after_the_refusal
    async with running(desk, script) as run:

        @run.gated
        async def send_money(recipient: str) -> str:
            return "sent"

        assert await send_money("GB29") == "sent"
    assert desk.consumed[0]["digest"] == next(iter(desk.calls.values()))["grant"]["digest"]


@pytest.mark.parametrize("status", ["consumed", "outcome_unknown"])
async def test_gated_taken_by_another_attempt_is_for_a_person(status: str) -> None:
    desk = Desk(judge=ended(status=status))
    with pytest.raises(placet.OutcomeUnknown, match="placet show invoice-march/"):
        await pay_in(desk, never)
    assert desk.finished == [], "the execution stays open for whoever settles it"


@pytest.mark.parametrize(
    ("status", "outcome"), [("consumed", placet.OutcomeUnknown), ("succeeded", "recorded")]
)
async def test_gated_losing_the_race_for_the_grant_never_runs(status: str, outcome: Any) -> None:
    lost = {"code": "already_consumed", "then": {"status": status, "output": "recorded"}}
    desk = Desk(refuse_consumption=[lost])
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: str) -> str:
            raise AssertionError("ran")

        if isinstance(outcome, str):
            assert await send_money("GB29") == outcome
        else:
            with pytest.raises(outcome):
                await send_money("GB29")


async def test_gated_done_by_an_earlier_attempt_returns_the_recorded_output() -> None:
    desk = Desk(judge=ended(status="succeeded", output={"id": 7}))
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: str) -> dict[str, int]:
            raise AssertionError("ran")

        assert await send_money("GB29") == {"id": 7}


async def test_gated_failed_in_an_earlier_attempt_says_how() -> None:
    desk = Desk(judge=ended(status="failed", error="no funds"))
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: str) -> None:
            raise AssertionError("ran")

        with pytest.raises(placet.ToolFailed, match="no funds"):
            await send_money("GB29")


async def test_gated_raising_reports_the_failure_and_raises_it() -> None:
    desk = Desk()
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: str) -> None:
            raise LookupError("no such account")

        with pytest.raises(LookupError, match="no such account"):
            await send_money("GB29")
    assert desk.results[0]["outcome"] == "failed"
    assert desk.results[0]["error"] == "LookupError: no such account"


async def test_gated_cancelled_while_running_reports_nothing() -> None:
    desk = Desk()
    async with running(desk) as run:
        started = asyncio.Event()

        @run.gated
        async def send_money(recipient: str) -> None:
            started.set()
            await asyncio.Event().wait()

        sending = asyncio.create_task(send_money("GB29"))
        await started.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    assert len(desk.consumed) == 1
    assert desk.results == []


async def test_gated_output_that_is_no_json_is_marked_and_never_handed_out_as_if_it_were() -> None:
    desk = Desk()
    async with running(desk) as run:

        @run.gated
        async def open_file(name: str) -> Any:
            return {1, 2}

        assert await open_file("x") == {1, 2}
        recorded = desk.results[0]["output"]
        desk.judge = ended(status="succeeded", output=recorded)
        with pytest.raises(placet.OutputNotRecorded):
            await open_file("x")


async def test_gated_output_too_large_is_reported_without_it() -> None:
    too_large = {"status": 413, "code": "too_large", "detail": "x"}
    desk = Desk(refuse_result=[too_large])
    async with running(desk) as run:

        @run.gated
        async def read_all(name: str) -> str:
            return "x" * 5000

        assert await read_all("x") == "x" * 5000
    assert desk.results[0]["outcome"] == "succeeded"
    assert len(str(desk.results[0]["output"])) < 2000


async def test_gated_whose_result_can_not_be_reported_keeps_output_and_cause() -> None:
    desk = Desk(refuse_result=[{"status": 409, "code": "execution_closed", "detail": "over"}])

    async def send_money(recipient: str) -> str:
        return "sent"

    with pytest.raises(placet.ResultNotReported) as caught:
        await pay_in(desk, send_money)
    assert caught.value.output == "sent"
    assert isinstance(caught.value.__cause__, placet.ExecutionClosed)


async def test_gated_arguments_that_do_not_fit_leave_the_grant_unused() -> None:
    def edit(desk: Desk, call: Resource) -> Resource:
        edited = {"colour": "red"}
        return granted({**call, "revision": 2, "arguments": edited}, edited)

    desk = Desk(judge=edit)
    with pytest.raises(placet.PlacetError, match="do not fit"):
        await pay_in(desk, never)
    assert desk.consumed == []


async def test_gated_with_an_argument_that_is_no_json_proposes_nothing() -> None:
    desk = Desk()
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: Any) -> None: ...

        with pytest.raises(TypeError, match="recipient"):
            await send_money(object())
    assert desk.calls == {}


async def test_gated_twice_at_once_for_one_id_are_two_attempts() -> None:
    desk = Desk()
    async with running(desk) as run:

        @run.gated(call_id="one")
        async def send_money(recipient: str) -> None: ...

        await asyncio.gather(send_money("GB29"), send_money("GB29"))
    assert len({one["attempt_id"] for one in desk.consumed}) == 2


async def test_gated_of_the_module_uses_the_execution_around_it() -> None:
    desk = Desk()

    @gated(tool="transfer")
    async def send_money(recipient: str) -> str:
        return placet.current_call().idempotency_key

    with pytest.raises(placet.NoExecution):
        await send_money("GB29")
    async with running(desk):
        assert await send_money("GB29") == "d1"
    assert next(iter(desk.calls.values()))["tool"] == "transfer"


async def test_gated_synchronous_function_in_an_asynchronous_run_is_awaited() -> None:
    async with running(Desk()) as run:

        @run.gated
        def send_money(recipient: str) -> Any:
            return recipient

        assert await send_money("GB29") == "GB29"


async def test_execution_left_by_an_error_fails_and_by_a_passing_one_stays_open() -> None:
    desk = Desk()
    with pytest.raises(LookupError):
        async with running(desk):
            raise LookupError("gone")
    assert desk.finished == [{"outcome": "failed", "reason": "LookupError: gone"}]
    for passing in (placet.Unreachable("later"), KeyboardInterrupt()):
        desk = Desk()
        with pytest.raises(type(passing)):
            async with running(desk):
                raise passing
        assert desk.finished == []


async def test_execution_result_is_recorded() -> None:
    desk = Desk()
    async with running(desk) as run:
        run.result = {"paid": 3}
    assert desk.finished == [{"outcome": "completed", "result": {"paid": 3}}]
    assert desk.started[0]["execution_id"] == "invoice-march"
    assert desk.started[0]["agent"] == "billing-bot"


async def test_wait_outlives_a_gateway_that_restarts() -> None:
    desk = Desk(judge=ended(status="held"))
    async with serving(desk.scripted()) as script:
        port = int(script.url.rpartition(":")[2])
        client = AsyncPlacet(script.url, token="t", patience=replace(QUICK, request_s=0.5, outage_s=10))
        call = await client.propose("run", "pay", {"n": 1}, call_id="c1")
        waiting = asyncio.create_task(client.channel.decided(call, None))
    desk.calls["c1"].update(granted(desk.calls["c1"], {"n": 1}))
    async with serving(desk.scripted(), port):
        decided = await asyncio.wait_for(waiting, 10)
        await client.close()
    assert decided.status == "released"
