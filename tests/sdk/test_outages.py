"""Gateways that are away, and proxies that answer for them, while somebody is waited for (docs/sdk.md, Transport)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

import placet
from placet import AsyncPlacet, Placet
from placet.cli.app import exit_code, explained
from placet.execution import AsyncExecution
from placet.parsing import UnexpectedAnswer
from placet.transport.auto import Mode
from tests.sdk.proxied import Proxied
from tests.sdk.scripted import QUICK, Asked, Scripted, serving
from tests.sdk.threaded import serving_thread

# Shorter than the outages of these tests, as 30 s are shorter than those that are meant.
IMPATIENT = replace(QUICK, request_s=1.0, poll_s=0.05, outage_s=60.0)
OUTAGE_POLLS = 40
PASSING = [408, 425, 429, 500, 501, 502, 503, 504, 520]
Wait = Callable[[AsyncExecution], Awaitable[Any]]


async def paid(run: AsyncExecution) -> Any:
    @run.gated
    async def send_money(recipient: str) -> str:
        return f"paid {recipient}"

    return await send_money("GB29")


async def asked_for(run: AsyncExecution) -> Any:
    return (await run.ask("Which account?")).response


async def run_once(proxied: Proxied, wait: Wait, mode: Mode, patience: placet.Patience = IMPATIENT) -> Any:
    async with (
        serving(proxied.scripted()) as script,
        AsyncPlacet(script.url, token="t", agent="billing-bot", transport=mode, patience=patience) as client,
        client.execution(id="e1") as run,
    ):
        return await wait(run)


@pytest.fixture(autouse=True)
def short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll waits half a second at most, so that an outage outlasts what one poll is tried for."""
    for module in ("placet.transport.rest", "placet.human_requests"):
        monkeypatch.setattr(f"{module}.MOST_WAIT_S", 0.5)


@pytest.mark.parametrize(("wait", "found"), [(paid, "paid GB29"), (asked_for, "GB29")])
async def test_wait_for_a_person_outlives_passing_answers_without_a_problem(wait: Wait, found: str) -> None:
    async def outlived(status: int) -> None:
        proxied = Proxied(status, times=OUTAGE_POLLS)
        assert await run_once(proxied, wait, "rest") == found
        assert proxied.polls > OUTAGE_POLLS
        assert proxied.ended_as == ["complete"]

    await asyncio.gather(*(outlived(status) for status in PASSING))


@pytest.mark.parametrize(("wait", "found"), [(paid, "paid GB29"), (asked_for, "GB29")])
@pytest.mark.parametrize("mode", ["auto", "rest"])
async def test_wait_for_a_person_outlives_a_gateway_that_reads_its_log(
    mode: Mode, wait: Wait, found: str
) -> None:
    def reading(status: int) -> Response:
        return JSONResponse({"code": "unavailable", "detail": "the log is read"}, status)

    proxied = Proxied(503, times=OUTAGE_POLLS, page=reading)
    assert await run_once(proxied, wait, mode) == found
    assert proxied.ended_as == ["complete"]


@pytest.mark.parametrize("wait", [paid, asked_for])
@pytest.mark.parametrize("status", [429, 500, 502])
async def test_wait_for_a_person_given_up_leaves_the_run_open(status: int, wait: Wait) -> None:
    proxied = Proxied(status, times=None)
    with pytest.raises((placet.Unavailable, placet.QuotaExceeded)) as failed:
        await run_once(proxied, wait, "rest", replace(IMPATIENT, outage_s=1.5))
    assert failed.value.acts == "retry"
    assert proxied.ended_as == []


async def test_wait_for_a_person_told_when_to_come_back_waits_that_long() -> None:
    def later(status: int) -> Response:
        return Response(status_code=status, headers={"Retry-After": "1"})

    proxied = Proxied(503, times=2, page=later)
    began = asyncio.get_running_loop().time()
    assert await run_once(proxied, asked_for, "rest") == "GB29"
    assert asyncio.get_running_loop().time() - began >= 2
    assert proxied.polls == 3


async def test_answer_that_is_not_placets_leaves_the_run_open_and_says_so() -> None:
    proxied = Proxied(200, times=None)
    with pytest.raises(UnexpectedAnswer, match="expected an object") as failed:
        await run_once(proxied, asked_for, "rest")
    assert failed.value.acts == "operator"
    assert proxied.ended_as == []


async def test_wait_for_a_call_that_another_process_proposed_outlives_passing_answers() -> None:
    proxied = Proxied(502, times=OUTAGE_POLLS)
    async with (
        serving(proxied.scripted()) as script,
        AsyncPlacet(script.url, token="t", transport="rest", patience=IMPATIENT) as client,
    ):
        await client.propose("e1", "send_money", {}, call_id="c1")
        assert (await client.wait("e1", "c1")).status == "released"


def test_blocking_client_waits_likewise() -> None:
    proxied = Proxied(502, times=OUTAGE_POLLS)
    with (
        serving_thread(proxied.scripted()) as script,
        Placet(script.url, token="t", agent="billing-bot", transport="rest", patience=IMPATIENT) as client,
        client.execution(id="e1") as run,
    ):

        @run.gated
        def send_money(recipient: str) -> str:
            return f"paid {recipient}"

        assert send_money("GB29") == "paid GB29"
        proxied.polls = 0
        assert run.ask("Which account?").response == "GB29"
    assert proxied.ended_as == ["complete"]


async def test_several_errors_at_once_leave_the_run_open_where_one_does() -> None:
    class Several(Exception):
        """As an ExceptionGroup, which Python 3.10 has not."""

        def __init__(self, *exceptions: Exception) -> None:
            super().__init__("several")
            self.exceptions = exceptions

    for errors, ended_as in [
        ((ValueError("x"), placet.Unreachable("away")), []),
        ((ValueError("x"), Several(ValueError("y"))), ["fail"]),
        ((Several(placet.Unavailable("unavailable", 503, "")),), []),
    ]:
        proxied, error = Proxied(502, times=0), Several(*errors)

        async def fail(run: AsyncExecution, error: Exception = error) -> None:
            raise error

        with pytest.raises(Several):
            await run_once(proxied, fail, "rest")
        assert proxied.ended_as == ended_as


SHORT = replace(QUICK, request_s=0.2, answer_s=0.6)


@pytest.mark.parametrize("mode", ["rest", "ws"])
async def test_change_that_was_sent_and_never_answered_may_have_been_done(mode: Mode) -> None:
    never = asyncio.Event()

    async def silent(asked: Asked) -> Response:
        await never.wait()
        return Response()

    async with (
        serving(Scripted(on_http=silent)) as script,
        AsyncPlacet(script.url, token="t", agent="billing-bot", transport=mode, patience=SHORT) as client,
    ):
        with pytest.raises(
            placet.NoAnswer, match=r"no answer within 0\.6 s; it may have been done"
        ) as caught:
            await client.propose("e1", "send_money", {}, call_id="c1")
        assert caught.value.path.startswith("/executions/e1/tool-calls")
        with pytest.raises(placet.Unreachable, match=r"does not answer; tried for \d\.\d s") as read:
            await client.holds.list()
        never.set()
    assert not isinstance(read.value, placet.NoAnswer)


@pytest.mark.parametrize("mode", ["rest", "ws"])
async def test_read_that_waits_for_its_turn_at_the_door_gets_the_doors_own_refusal(mode: Mode) -> None:
    async def busy(asked: Asked) -> Response:
        await asyncio.sleep(2 * SHORT.request_s)
        return JSONResponse({"code": "unavailable", "detail": "wait for the other questions"}, 503)

    async with (
        serving(Scripted(on_http=busy)) as script,
        AsyncPlacet(script.url, token="t", transport=mode, patience=replace(SHORT, answer_s=10)) as client,
    ):
        with pytest.raises(placet.Unavailable, match="wait for the other questions"):
            await client.holds.list()
        assert len(script.asked) == 1


async def test_read_whose_connection_broke_is_given_up_as_one_that_reached_nobody() -> None:
    async with (
        broken_off() as address,
        AsyncPlacet(address, token="t", transport="rest", patience=replace(SHORT, answer_s=60)) as client,
        asyncio.timeout(10),
    ):
        with pytest.raises(placet.Unreachable, match=r"closed the connection .*; tried for \d\.\d s"):
            await client.holds.list()


@asynccontextmanager
async def broken_off() -> AsyncIterator[str]:
    """The address of a server that takes each request and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("mode", ["rest", "ws"])
async def test_change_that_reached_nobody_is_given_up_as_soon_as_a_read(mode: Mode) -> None:
    nowhere = "http://127.0.0.1:1"
    async with AsyncPlacet(
        nowhere, token="t", transport=mode, patience=replace(SHORT, request_s=1.0, answer_s=60)
    ) as client:
        async with asyncio.timeout(10):
            with pytest.raises(placet.Unreachable, match="not reachable") as caught:
                await client.propose("e1", "send_money", {}, call_id="c1")
    assert not isinstance(caught.value, placet.NoAnswer)


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/holds/h1/decision", "placet show h1"),
        ("/holds/decisions", "placet inbox"),
        ("/executions/e1/pause", "placet state e1"),
        ("/executions/e1/tool-calls/c1/revoke", "placet show e1/c1"),
        ("/executions/e1/tool-calls/c1/report-impact", "placet show e1/c1"),
        ("/policies/production", "placet policy show production"),
        ("/standing-rules/r1/revoke", "placet rules"),
        ("/data-keys/k1/destroy", "placet audit"),
    ],
)
def test_command_names_what_shows_whether_it_was_done(path: str, command: str) -> None:
    error = placet.NoAnswer("http://x does not answer: no answer within 20 s; it may have been done", path)
    assert explained(error).splitlines()[1] == f"check with `{command}` before you repeat it"
    assert exit_code(error) == 3
