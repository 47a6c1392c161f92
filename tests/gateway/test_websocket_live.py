from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gateway.settings import Limits
from gateway.sockets.ws import FRAME_MAX_BYTES
from tests.gateway.another import another_gateway
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import Socket, check_named, open_socket, raw_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def fresh(prefix: str = "w") -> str:
    return f"{prefix}-{uuid4().hex[:12]}"


async def test_agent_works_over_one_socket_pipelined(bot: Caller) -> None:
    async with open_socket(bot.url, bot.token) as socket:
        execution_id = fresh()
        # Nothing is waited for in between: what follows a start may be on its way before its answer.
        await socket.send(
            type="start_execution", ref="start" + execution_id, body={"execution_id": execution_id}
        )
        refs = [fresh("r") for _ in range(20)]
        for number, ref in enumerate(refs):
            body = {"call_id": f"c{number}", "tool": "read_file", "arguments": {"n": number}}
            await socket.send(type="propose", ref=ref, execution_id=execution_id, body=body)
        replies = [await socket.next("reply", ref=ref) for ref in refs]
        assert {(reply["status"], reply["body"]["status"]) for reply in replies} == {(200, "released")}
        grant = {"digest": replies[3]["body"]["digest"], "attempt_id": "a1"}
        where = {"execution_id": execution_id, "call_id": "c3"}
        assert (await socket.ask("consume", **where, body=grant))["body"]["status"] == "consumed"
        result = {"attempt_id": "a1", "outcome": "failed", "error": "no such file"}
        assert (await socket.ask("result", **where, body=result))["body"]["status"] == "failed"
        ending = {"outcome": "completed", "result": {"n": 20}}
        ended = await socket.ask("finish_execution", execution_id=execution_id, body=ending)
        assert (ended["status"], ended["body"]["state"]) == (200, "completed")


async def test_held_calls_decision_is_pushed_to_its_proposer(bot: Caller, anna: Caller) -> None:
    execution_id = fresh()
    async with open_socket(bot.url, bot.token) as agent, open_socket(anna.url, anna.token) as person:
        await person.subscribe("holds")
        await agent.start(execution_id)
        reply = await agent.propose(execution_id, "c1", "send_money")
        assert (reply["status"], reply["body"]["status"]) == (202, "held")
        shown = await person.next("tool_call_pending_review", execution_id=execution_id)
        assert shown["arguments"] == {"amount": 5}
        await person.ask("claim", hold_id=shown["hold_id"])
        assert (await person.next("hold_changed", hold_id=shown["hold_id"]))["change"] == "claimed"
        word = {"hold_id": shown["hold_id"], "decision": "approve", "digest": shown["digest"]}
        recorded = await person.ask("decision", **word)
        assert recorded["body"]["status"] == "resolved"
        pushed = await agent.next("tool_call_decided", call_id="c1")
        assert pushed["status"] == "released"
        assert pushed["approved_arguments"] == {"amount": 5}
        await person.next("hold_resolved", hold_id=shown["hold_id"])


async def test_proposal_repeated_on_another_socket_gets_the_push_too(bot: Caller, anna: Caller) -> None:
    execution_id, ref = fresh(), fresh("r")
    async with open_socket(bot.url, bot.token) as first:
        await first.start(execution_id)
        held = await first.ask(
            "propose",
            ref=ref,
            execution_id=execution_id,
            body={"call_id": "c1", "tool": "send_money", "arguments": {"amount": 5}},
        )
    async with open_socket(bot.url, bot.token) as second:
        again = await second.ask(
            "propose",
            ref=ref,
            execution_id=execution_id,
            body={"call_id": "c1", "tool": "send_money", "arguments": {"amount": 5}},
        )
        assert again["body"]["hold_id"] == held["body"]["hold_id"]
        word = {"decision": "reject", "digest": held["body"]["digest"], "feedback": "no"}
        await asyncio.to_thread(anna.post, f"/v1/holds/{held['body']['hold_id']}/decision", word)
        assert (await second.next("tool_call_decided", call_id="c1"))["status"] == "denied"


async def test_ref_with_another_body_is_a_reuse_over_any_door(bot: Caller) -> None:
    execution_id, ref = fresh(), fresh("r")
    async with open_socket(bot.url, bot.token) as socket:
        await socket.start(execution_id)
        body = {"call_id": "c1", "tool": "read_file", "arguments": {"a": 1}}
        first = await socket.ask("propose", ref=ref, execution_id=execution_id, body=body)
        again = await socket.ask("propose", ref=ref, execution_id=execution_id, body=body)
        assert first["body"]["digest"] == again["body"]["digest"]
        other = await socket.ask(
            "propose", ref=ref, execution_id=execution_id, body={**body, "call_id": "c2"}
        )
        assert (other["status"], other["body"]["code"]) == (409, "idempotency_key_reused")
    path = f"/v1/executions/{execution_id}/tool-calls"
    by_rest = await asyncio.to_thread(bot.post, path, body, key=ref)
    assert by_rest.json()["digest"] == first["body"]["digest"]


async def test_subscribe_with_the_last_cursor_has_no_loss_and_no_repeat(bot: Caller, anna: Caller) -> None:
    execution_id = fresh()
    async with open_socket(bot.url, bot.token) as agent:
        await agent.start(execution_id)
        async with open_socket(anna.url, anna.token) as person:
            await person.subscribe(f"executions:{execution_id}")
            await agent.propose(execution_id, "c1", "send_money")
            seen = await person.next("tool_call_pending_review")
        await agent.propose(execution_id, "c2", "send_money")
        async with open_socket(anna.url, anna.token) as person:
            await person.subscribe(f"executions:{execution_id}", cursor=seen["cursor"])
            await agent.propose(execution_id, "c3", "send_money")
            calls: list[str] = []
            while len(calls) < 2:
                message = await person.receive()
                if message["type"] == "tool_call_pending_review":
                    calls.append(message["call_id"])
            assert calls == ["c2", "c3"]


async def test_subscribe_with_a_forged_cursor_is_refused(anna: Caller) -> None:
    async with open_socket(anna.url, anna.token) as person:
        await person.send(type="subscribe", channels=["holds"], cursor="forged")
        assert (await person.next("error"))["code"] == "invalid"


async def test_request_over_the_socket(bot: Caller, anna: Caller) -> None:
    async with open_socket(bot.url, bot.token) as agent, open_socket(anna.url, anna.token) as person:
        await person.subscribe("holds")
        asked = await agent.ask("request", body={"question": "Which?", "request_id": fresh("q")})
        assert asked["status"] == 201
        shown = await person.next("hitl_requested", hold_id=asked["body"]["hold_id"])
        reply = await person.ask("decision", hold_id=shown["hold_id"], decision="respond", value="a")
        assert reply["status"] == 200
        resolved = await person.next("hold_resolved", hold_id=shown["hold_id"])
        assert resolved["response"] == "a"


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ('{"type":"nonsense"}', "invalid"),
        ('{"type":"ping","type":"ping"}', "malformed"),
        ("[1]", "malformed"),
        ("nonsense", "malformed"),
        ('{"type":"ping","ref":1}', "invalid"),
        ('{"type":"propose","execution_id":7,"body":{}}', "invalid"),
        ('{"type":"propose","execution_id":"nowhere","body":{}}', "not_found"),
        ('{"type":"subscribe","channels":"holds"}', "invalid"),
        ('{"type":"subscribe","channels":["nonsense"]}', "invalid"),
        ('{"type":"subscribe","channels":["calls:nowhere/c"]}', "not_found"),
        ('{"type":"claim","hold_id":"nowhere"}', "not_found"),
        ('{"type":"start_execution","body":{"agent":NaN}}', "malformed"),
        ('{"type":"start_execution","body":{"surprise":1}}', "invalid"),
    ],
)
async def test_message_that_is_wrong_is_answered_and_the_socket_goes_on(
    admin: Caller, frame: str, code: str
) -> None:
    async with open_socket(admin.url, admin.token) as socket:
        await socket.connection.send(frame)
        assert (await socket.next("error"))["code"] == code
        await socket.send(type="ping", ref="p")
        await socket.next("pong", ref="p")


async def test_agent_may_follow_its_own_and_nothing_else(doors: Doors, bot: Caller) -> None:
    execution_id = await asyncio.to_thread(bot.execution)
    stranger = doors.caller("spy", "agent", agent="spy")
    async with open_socket(bot.url, bot.token) as own:
        assert (await own.subscribe(f"executions:{execution_id}"))[0]["execution_id"] == execution_id
        await own.send(type="subscribe", channels=["holds"])
        assert (await own.next("error"))["code"] == "not_authorised"
    async with open_socket(bot.url, stranger.token) as other:
        await other.send(type="subscribe", channels=[f"executions:{execution_id}"])
        assert (await other.next("error"))["code"] == "not_authorised"
        reply = await other.propose(execution_id, "c1", "read_file")
        assert (reply["status"], reply["body"]["code"]) == (403, "not_authorised")


async def test_first_message_must_be_a_believed_token(bot: Caller) -> None:
    for first in ({"type": "ping"}, {"type": "authenticate", "token": "nonsense"}, {"type": "authenticate"}):
        async with raw_socket(bot.url) as connection:
            await connection.send(json.dumps(first))
            refused = json.loads(await connection.recv())
            check_named(refused)
            assert (refused["code"], refused["problem"]) == ("unauthenticated", "/problems/unauthenticated")
            assert (refused["title"], refused["ref"]) == ("unauthenticated", None)
            with pytest.raises(ConnectionClosed) as closed:
                await connection.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4401


async def test_no_token_in_five_seconds_closes(bot: Caller) -> None:
    async with raw_socket(bot.url) as connection:
        began = time.monotonic()
        assert json.loads(await connection.recv())["code"] == "unauthenticated"
        with pytest.raises(ConnectionClosed):
            await connection.recv()
        assert 4.0 < time.monotonic() - began < 12.0


async def test_bearer_header_needs_no_first_message(bot: Caller) -> None:
    headers = {"Authorization": f"Bearer {bot.token}"}
    async with raw_socket(bot.url, additional_headers=headers) as connection:
        assert json.loads(await connection.recv())["type"] == "authenticated"


async def test_token_in_the_url_is_refused_before_the_socket_opens(bot: Caller) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with raw_socket(bot.url, f"?token={bot.token}"):
            pass
    assert refused.value.response.status_code == 401
    answer = bot.get(f"/v1/holds?access_token={bot.token}")
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://127.0.0.1.evil.example", "null", "http://localhost:1"]
)
async def test_foreign_origin_is_refused_before_the_socket_opens(bot: Caller, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with raw_socket(bot.url, origin=origin):
            pass
    assert refused.value.response.status_code == 403


async def test_own_origin_is_welcome(bot: Caller) -> None:
    async with raw_socket(bot.url, origin=bot.url) as connection:
        await connection.send(json.dumps({"type": "authenticate", "token": bot.token}))
        assert json.loads(await connection.recv())["type"] == "authenticated"


async def test_token_that_expires_on_the_socket_closes_it(doors: Doors) -> None:
    token = doors.token("anna", "reviewer", ttl_s=2)
    async with open_socket(doors.url, token) as socket:
        with pytest.raises(ConnectionClosed) as closed:
            await socket.next("nothing that comes")
        told = closed.value.rcvd
        assert told is not None
        assert (told.code, told.reason) == (4401, "the token has expired: get a new one")


async def test_giant_frame_closes_with_1009_and_others_go_on(bot: Caller) -> None:
    async with open_socket(bot.url, bot.token) as other, open_socket(bot.url, bot.token) as socket:
        await socket.connection.send("x" * (FRAME_MAX_BYTES + 1))
        with pytest.raises(ConnectionClosed) as closed:
            await socket.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
        await other.send(type="ping", ref="p")
        await other.next("pong", ref="p")


async def test_flood_is_refused_then_cut_off_and_others_go_on(doors: Doors, bot: Caller) -> None:
    async with (
        another_gateway(doors, Limits(messages_per_s=100)) as url,
        open_socket(url, bot.token) as other,
        open_socket(url, bot.token) as socket,
    ):
        codes: list[str] = []
        with pytest.raises(ConnectionClosed) as closed:
            await _flood(socket, codes)
        assert set(codes) == {"quota"}
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
        await other.send(type="ping", ref="p")
        await other.next("pong", ref="p")


async def _flood(socket: Socket, codes: list[str]) -> None:
    ping = json.dumps({"type": "ping", "ref": "p"})
    async with asyncio.timeout(60):
        while True:
            await socket.connection.send(ping)
            message = await socket.receive()
            codes += [message["code"]] if message["type"] == "error" else []


async def test_slow_reader_must_subscribe_anew_and_holds_nobody_up(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    limits = Limits(queue_messages=20)
    async with (
        another_gateway(doors, limits) as url,
        raw_socket(url, max_queue=1) as slow,
        open_socket(url, anna.token) as quick,
        open_socket(url, bot.token) as agent,
    ):
        await slow.send(json.dumps({"type": "authenticate", "token": anna.token}))
        await slow.send(json.dumps({"type": "subscribe", "channels": ["events"]}))
        execution_id = fresh()
        await agent.start(execution_id)
        await quick.subscribe(f"executions:{execution_id}")
        padding = "x" * 200_000
        for number in range(40):
            reply = await agent.propose(execution_id, f"c{number}", "read_file", arguments={"p": padding})
            assert reply["status"] == 200
            await quick.next("tool_call_decided", call_id=f"c{number}")
        types: list[str] = []
        async with asyncio.timeout(30):
            while "resync_required" not in types:
                types.append(json.loads(await slow.recv())["type"])
        assert types[:2] == ["authenticated", "snapshot"]
        assert len(types) < 120


async def test_more_in_flight_than_allowed_waits_and_is_answered(doors: Doors, bot: Caller) -> None:
    async with another_gateway(doors, Limits(in_flight=2)) as url, open_socket(url, bot.token) as socket:
        execution_id = fresh()
        await socket.start(execution_id)
        refs = [fresh("r") for _ in range(20)]
        for ref in refs:
            body = {"call_id": ref, "tool": "read_file", "arguments": {}}
            await socket.send(type="propose", ref=ref, execution_id=execution_id, body=body)
        assert {(await socket.next("reply", ref=ref))["status"] for ref in refs} == {200}


async def test_two_gateways_are_one_door(doors: Doors, bot: Caller, anna: Caller) -> None:
    async with (
        another_gateway(doors) as url,
        open_socket(bot.url, bot.token) as here,
        open_socket(url, bot.token) as there,
    ):
        for _ in range(10):
            execution_id, ref = fresh(), fresh("r")
            await here.start(execution_id)
            # What was begun at one door a moment ago is known at the other.
            body = {"call_id": "c1", "tool": "send_money", "arguments": {"amount": 5}}
            ask = {"ref": ref, "execution_id": execution_id, "body": body}
            both = await asyncio.gather(here.ask("propose", **ask), there.ask("propose", **ask))
            assert {reply["status"] for reply in both} == {202}
            assert len({reply["body"]["hold_id"] for reply in both}) == 1
        by_rest = replace(anna, url=url)
        hold_id, digest = both[0]["body"]["hold_id"], both[0]["body"]["digest"]
        word = {"decision": "approve", "digest": digest}
        decided = await asyncio.to_thread(by_rest.post, f"/v1/holds/{hold_id}/decision", word)
        assert decided.status_code == 200
        assert (await here.next("tool_call_decided", call_id="c1"))["status"] == "released"
        assert (await there.next("tool_call_decided", call_id="c1"))["status"] == "released"
        path = f"/v1/executions/{execution_id}/tool-calls/c1?after={decided.json()['cursor']}"
        assert (await asyncio.to_thread(bot.get, path)).json()["status"] == "released"


async def test_gateways_own_policy_only_tightens(doors: Doors, bot: Caller, tmp_path: Path) -> None:
    policy = tmp_path / "gateway.yaml"
    policy.write_text("deny: ['shell*']\nraise: ['read_*']\n")
    async with another_gateway(doors, policy_file=policy) as url, open_socket(url, bot.token) as socket:
        execution_id = fresh()
        await socket.start(execution_id)
        denied = await socket.propose(execution_id, "c1", "shell")
        assert (denied["status"], denied["body"]["code"]) == (403, "not_authorised")
        raised = await socket.propose(execution_id, "c2", "read_file")
        plain = await asyncio.to_thread(bot.propose, execution_id, "read_file")
        assert raised["body"]["verdict"]["risk"]["score"] > plain["verdict"]["risk"]["score"]
        path = f"/v1/executions/{execution_id}/tool-calls/c1"
        assert (await asyncio.to_thread(bot.get, path)).status_code == 404


async def test_hold_resolved_comes_once_however_many_decisions_are_refused_afterwards(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    execution_id = await asyncio.to_thread(bot.execution)
    call = await asyncio.to_thread(bot.propose, execution_id, call_id="c1")
    channels = ("holds", f"executions:{execution_id}", f"calls:{execution_id}/c1")
    async with open_socket(anna.url, anna.token) as person:
        await person.subscribe(*channels)
        word = {"hold_id": call["hold_id"], "decision": "approve", "digest": call["digest"]}
        assert (await person.ask("decision", **word))["status"] == 200
        cursor = (await person.next("tool_call_decided", call_id="c1"))["cursor"]
        for number in range(3):
            late = {**word, "decision": "reject", "feedback": f"late {number}"}
            assert (await person.ask("decision", **late))["body"]["code"] == "already_decided"
        wrong = await person.ask(
            "consume", execution_id=execution_id, call_id="c1", body={"digest": "0" * 64, "attempt_id": "a"}
        )
        assert wrong["status"] >= 400
        await person.send(type="ping")
        await person.next("pong")
        kinds = Counter(message["type"] for message in person.kept)
    assert kinds["hold_resolved"] == 1
    assert kinds.keys() <= {"hold_resolved", "execution_state_changed"}
    async with open_socket(anna.url, anna.token) as person:
        await person.send(type="subscribe", channels=channels, cursor=cursor)
        await asyncio.to_thread(bot.propose, execution_id, call_id="c2")
        await person.next("tool_call_changed", call_id="c2")
    assert {message["type"] for message in person.kept} <= {
        "tool_call_pending_review",
        "execution_state_changed",
    }
