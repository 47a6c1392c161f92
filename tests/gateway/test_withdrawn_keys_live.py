"""A key of an issuer that somebody else has: once it is withdrawn, what its tokens opened is closed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from gateway.identity.issuer import issue
from gateway.identity.keys import ISSUERS, load_or_create, withdraw
from host.key_files import locked, publish, write_private
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import Socket, open_socket
from tests.gateway.test_stream_live import messages_of, open_stream

pytestmark = [pytest.mark.stack, pytest.mark.broker]
WITHIN_S = 60.0


@dataclass(frozen=True)
class Stolen:
    """A key of the installation's issuers, of which only these tests issue tokens."""

    doors: Doors
    own: Path

    @property
    def path(self) -> Path:
        return self.doors.stack.data_dir / "keys" / ISSUERS

    def caller(self, subject: str, *roles: str, **more: Any) -> Caller:
        token = issue(self.own, subject, roles, "acme", "books", **more)
        return Caller(self.doors.url, token, self.doors.client)

    def withdraw(self, seen_by: Caller) -> None:
        """Withdraw the key, and wait until REST refuses its tokens."""
        withdraw(self.path.parent, "issuer", load_or_create(self.own).issuer.kid)
        until_s = time.monotonic() + WITHIN_S
        while seen_by.get("/v1/holds").status_code != 401:
            assert time.monotonic() < until_s
            time.sleep(0.1)


@pytest.fixture
def stolen(doors: Doors, tmp_path: Path) -> Iterator[Stolen]:
    found = Stolen(doors, tmp_path / "keys")
    with locked(found.path.parent):
        before = found.path.read_text()
        publish(found.path, load_or_create(found.own).issuer)
    yield found
    with locked(found.path.parent):
        write_private(found.path, before.encode())


async def closed_as(socket: Socket) -> tuple[int, str]:
    """How the gateway ends a socket."""
    with pytest.raises(ConnectionClosed) as closed:
        await socket.next("nothing that comes")
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code, closed.value.rcvd.reason


async def test_case_12_sockets_of_a_withdrawn_issuers_key_decide_propose_and_hear_nothing_more(
    stolen: Stolen, bot: Caller, anna: Caller
) -> None:
    thief, thiefs_bot = stolen.caller("thief", "reviewer"), stolen.caller("tb", "agent", agent="billing")
    execution_id = bot.execution()
    held = bot.propose(execution_id)
    async with (
        open_socket(thief.url, thief.token) as deciding,
        open_socket(thief.url, thief.token) as listening,
        open_socket(thief.url, thief.token) as idle,
        open_socket(thiefs_bot.url, thiefs_bot.token) as proposing,
        open_socket(anna.url, anna.token) as other,
    ):
        await listening.subscribe("holds")
        await asyncio.to_thread(stolen.withdraw, thief)

        await deciding.send(
            type="decision", ref="d", hold_id=held["hold_id"], decision="approve", digest=held["digest"]
        )
        body = {"call_id": "stolen", "tool": "read_file", "arguments": {}}
        await proposing.send(type="propose", ref="p", execution_id=execution_id, body=body)
        await asyncio.to_thread(bot.propose, execution_id)

        for socket in (deciding, proposing, listening, idle):
            code, reason = await asyncio.wait_for(closed_as(socket), WITHIN_S)
            assert code == 4401
            assert "known issuer" in reason
            # A call that another test left without a report may come to be asked about at any time.
            assert [told for told in socket.kept if told.get("execution_id") == execution_id] == []
        await other.send(type="ping", ref="on")
        await other.next("pong", ref="on")
    hold = anna.get(f"/v1/holds/{held['hold_id']}").json()
    assert (hold["status"], hold["votes"]) == ("open", [])
    assert bot.get(f"/v1/executions/{execution_id}/tool-calls/stolen").status_code == 404


def test_case_12_stream_and_wait_of_a_withdrawn_issuers_key_end(stolen: Stolen, bot: Caller) -> None:
    thief = stolen.caller("thief", "reviewer")
    execution_id = bot.execution()
    call = bot.propose(execution_id)
    with open_stream(thief, "holds") as response:
        messages = messages_of(response.iter_lines())
        assert next(messages)["type"] == "snapshot"
        stolen.withdraw(thief)
        last = list(messages)[-1]
    assert (last["type"], last["code"]) == ("error", "unauthenticated")
    assert thief.get(f"/v1/executions/{execution_id}/tool-calls/{call['call_id']}").status_code == 401


def waiting(thief: Caller, bot: Caller, wait_s: int) -> tuple[Any, Any, list[asyncio.Task[Any]]]:
    """A call and a request of the bot's, and the thief's waits for both."""
    call = bot.propose(bot.execution())
    path = f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}"
    asked = {"kind": "clarification", "question": "Which one?", "execution_id": call["execution_id"]}
    request = bot.post("/v1/requests", asked).json()
    waits = [
        asyncio.create_task(asyncio.to_thread(thief.get, f"{where}?wait={wait_s}"))
        for where in (path, f"/v1/requests/{request['request_id']}")
    ]
    return call, request, waits


async def test_case_12_who_waits_for_a_decision_is_not_told_it_once_the_key_is_withdrawn(
    stolen: Stolen, bot: Caller, anna: Caller
) -> None:
    thief = stolen.caller("thief", "reviewer")
    call, request, waits = waiting(thief, bot, 30)
    # They wait at the gateway, or come after the key is gone: they are refused either way.
    await asyncio.to_thread(stolen.withdraw, thief)
    decisions = (
        (call["hold_id"], {"decision": "approve", "digest": call["digest"]}),
        (request["hold_id"], {"decision": "respond", "value": "IBAN"}),
    )
    for hold_id, decision in decisions:
        digest = anna.get(f"/v1/holds/{hold_id}").json()["digest"]
        answer = anna.post(f"/v1/holds/{hold_id}/decision", {"digest": digest, **decision})
        assert answer.status_code == 200, answer.text
    async with asyncio.timeout(WITHIN_S):
        answers = [await wait for wait in waits]
    assert [answer.status_code for answer in answers] == [401, 401], [answer.text for answer in answers]


async def test_case_12_who_waits_is_refused_soon_after_the_key_is_withdrawn_and_not_when_the_wait_ends(
    stolen: Stolen, bot: Caller
) -> None:
    thief = stolen.caller("thief", "reviewer")
    _, _, waits = waiting(thief, bot, 60)
    # Whoever waits by now would do so for far longer than the test allows.
    _, pending = await asyncio.wait(waits, timeout=1.0)
    assert len(pending) == len(waits)
    await asyncio.to_thread(stolen.withdraw, thief)
    async with asyncio.timeout(WITHIN_S):
        answers = [await wait for wait in waits]
    assert [answer.status_code for answer in answers] == [401, 401], [answer.text for answer in answers]
