"""A gateway that is asked to stop (SIGTERM) while clients wait: each is answered, and with no error of ours."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket
from tests.gateway.test_outage_live import stopped
from tests.integration.second_gateway import GatewayProcess, gateway_process

pytestmark = [pytest.mark.stack, pytest.mark.broker]

# Long polls are answered at once; the rest is what a busy machine needs for it.
AT_ONCE_S = 3.0
# No test looks at the time that a decision is given before it is answered 503; the server's own limit is 5 s.
ENDS_WITHIN_S = 10.0


@dataclass(frozen=True)
class Stopping:
    """A gateway to be stopped, and how a client asks it without keeping a thread."""

    gateway: GatewayProcess
    client: httpx.AsyncClient

    def ask(
        self, caller: Caller, method: str, path: str, body: Any = None, key: str = ""
    ) -> Awaitable[httpx.Response]:
        """One request that waits."""
        headers = {"Authorization": f"Bearer {caller.token}", "Idempotency-Key": key or uuid4().hex}
        return asyncio.create_task(
            self.client.request(method, f"{self.gateway.url}{path}", headers=headers, json=body)
        )

    async def is_served(self, caller: Caller, waiting: int) -> None:
        """Wait until the gateway has so many requests under way, besides the one that asks."""
        while True:
            metrics = (await self.client.get(f"{self.gateway.url}/metrics")).text
            found = [
                line for line in metrics.splitlines() if line.startswith("placet_gateway_requests_in_flight ")
            ]
            if found and float(found[0].split()[1]) > waiting:
                return
            await asyncio.sleep(0.02)

    async def stop(self) -> None:
        """Stop it, and wait until it has ended by itself."""
        self.gateway.process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(self.gateway.process.wait, ENDS_WITHIN_S)
        log = self.gateway.log.read_text(encoding="utf-8")
        assert code == 0, log
        assert "Traceback" not in log
        assert "ERROR" not in log
        assert "is stopping" in log


@asynccontextmanager
async def stopping(doors: Doors, directory: Path) -> AsyncIterator[Stopping]:
    with gateway_process(doors.stack.data_dir, directory) as gateway:
        async with httpx.AsyncClient(timeout=90) as client:
            yield Stopping(gateway, client)


async def test_long_polls_end_as_things_stand_and_streams_and_sockets_close_when_their_gateway_stops(
    doors: Doors, bot: Caller, anna: Caller, tmp_path: Path
) -> None:
    execution_id = await asyncio.to_thread(bot.execution)
    calls = f"/v1/executions/{execution_id}/tool-calls"
    held = await asyncio.to_thread(bot.propose, execution_id)
    question = {"execution_id": execution_id, "question": "Which account?"}
    asked = (await asyncio.to_thread(bot.post, "/v1/requests", question)).json()
    proposal = {"call_id": f"c-{uuid4().hex[:8]}", "tool": "send_money", "arguments": {"amount": 7}}
    async with (
        stopping(doors, tmp_path) as second,
        open_socket(second.gateway.url, bot.token) as socket,
        second.client.stream(
            "GET",
            f"{second.gateway.url}/v1/events/stream?channels=holds",
            headers={"Authorization": f"Bearer {anna.token}"},
        ) as stream,
    ):
        waiting = [
            second.ask(bot, "GET", f"{calls}/{held['call_id']}?wait=60"),
            second.ask(bot, "GET", f"/v1/requests/{asked['request_id']}?wait=60"),
            second.ask(bot, "POST", f"{calls}?wait=60", proposal),
        ]
        await second.is_served(bot, len(waiting) + 1)
        began = time.monotonic()
        ending = asyncio.create_task(second.stop())
        answers = await asyncio.gather(*waiting)
        took_s = time.monotonic() - began
        streamed = await stream.aread()
        with pytest.raises(ConnectionClosed) as closed:
            await socket.next("nothing")
        await ending

    assert [answer.status_code for answer in answers] == [202, 200, 202], [a.text for a in answers]
    assert [answer.json()["status"] for answer in answers] == ["held", "open", "held"]
    assert took_s < AT_ONCE_S
    assert b"event: snapshot" in streamed
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012


async def test_decision_under_way_is_unavailable_when_its_gateway_stops_and_the_repeat_gets_the_answer(
    doors: Doors, bot: Caller, anna: Caller, tmp_path: Path
) -> None:
    call = await asyncio.to_thread(lambda: bot.propose(bot.execution()))
    path, key = f"/v1/holds/{call['hold_id']}/decision", uuid4().hex
    word = {"decision": "approve", "digest": call["digest"]}
    async with stopping(doors, tmp_path) as second:
        with stopped(doors, "decider"):
            decision = second.ask(anna, "POST", path, word, key)
            half = asyncio.create_task(_half_a_body(second.gateway.url, bot))
            await second.is_served(bot, 2)
            ending = asyncio.create_task(second.stop())
            answer, text = await asyncio.gather(decision, half)
            await ending
    again = await asyncio.to_thread(lambda: anna.post(path, word, key=key))

    assert answer.status_code == 503, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "unavailable"
    assert answer.headers["retry-after"] == "1"
    assert text.startswith("HTTP/1.1 503 ")
    assert "retry-after: 1\r\n" in text
    assert '"code":"unavailable"' in text
    assert (again.status_code, again.json()["status"]) == (200, "resolved")


async def _half_a_body(url: str, caller: Caller) -> str:
    """The whole answer to a request whose body does not end: nothing that the gateway waits for answers it."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /v1/executions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {caller.token}\r\n"
    writer.write(f"{head}Content-Length: 100\r\n\r\n{{".encode())
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()
