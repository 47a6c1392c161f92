import asyncio
from dataclasses import replace
from typing import Any

import pytest

import placet
from placet import AsyncPlacet, gated
from tests.sdk.desk import Desk, Resource, ended, granted
from tests.sdk.runs import never, pay_in, running
from tests.sdk.scripted import QUICK, serving


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
        assert recorded == {"placet_unrecorded_output": "not JSON: builtins.set"}
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
    assert desk.results[0]["output"] == {"placet_unrecorded_output": "refused as too_large"}


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


@pytest.mark.parametrize(
    ("code", "said"), [("execution_closed", []), ("not_authorised", ["its failure could not be reported"])]
)
async def test_execution_left_by_an_error_is_told_as_open_only_where_it_is(
    code: str, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    refused = {"status": 409, "code": code, "detail": "the execution is failed"}
    with pytest.raises(placet.Denied):
        await pay_in(Desk(judge=ended(status="denied"), refuse_finish=[refused]), never)
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == len(said)
    assert all(words in line for words, line in zip(said, warned, strict=True))


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
