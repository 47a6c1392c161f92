import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet import asks
from placet.errors import NotAuthorised, Unauthenticated, Unreachable
from placet.transport.auto import AutoTransport
from placet.transport.port import Reply, Request
from placet.transport.socket import NoWebSocket
from placet.transport.ws import WsTransport
from tests.sdk.scripted import DEADLINE_S, QUICK, Asked, Peer, Scripted, serving

KEY = ("run", "c1")


def propose(call_id: str = "c1") -> Request:
    return asks.propose("run", {"call_id": call_id, "tool": "pay", "arguments": {}}, None)


def call(call_id: str = "c1", status: str = "released") -> dict[str, Any]:
    return {"execution_id": "run", "call_id": call_id, "status": status}


@asynccontextmanager
async def connected(script: Scripted) -> AsyncIterator[WsTransport]:
    transport = WsTransport(script.url, lambda: "secret", QUICK)
    try:
        yield transport
    finally:
        await transport.close()


async def test_send_shows_the_token_first_and_never_in_the_address() -> None:
    async def answer(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] == "propose":
            await peer.reply(message, call())

    async with serving(Scripted(on_frame=answer)) as script, connected(script) as transport:
        reply = await transport.send(propose())
    assert reply == Reply(200, call())
    assert script.peers[0].received[0] == {"type": "authenticate", "token": "secret"}
    assert "secret" not in str(script.peers[0].socket.url)


async def test_send_many_are_pipelined_and_answers_in_any_order_find_their_asker() -> None:
    asked: list[dict[str, Any]] = []

    async def answer_backwards(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] == "propose":
            asked.append(message)
        if len(asked) == 50:
            for one in reversed(asked):
                await peer.reply(one, call(one["body"]["call_id"]))

    async with serving(Scripted(on_frame=answer_backwards)) as script, connected(script) as transport:
        ids = [f"c{number}" for number in range(50)]
        replies = await asyncio.gather(*(transport.send(propose(one)) for one in ids))
    assert [reply.body["call_id"] for reply in replies] == ids
    assert len(script.peers) == 1


async def test_send_over_a_lost_connection_is_sent_again_under_the_same_ref() -> None:
    async def lose_the_first(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] != "propose":
            return
        if peer.number == 0:
            await peer.end()
        else:
            await peer.reply(message, call())

    async with serving(Scripted(on_frame=lose_the_first)) as script, connected(script) as transport:
        reply = await transport.send(propose())
    assert reply.ok
    first, second = script.frames("propose")
    assert first == second
    assert first["ref"]


async def test_send_several_over_a_lost_connection_keeps_their_order() -> None:
    async def lose_the_first(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] != "propose":
            return
        if peer.number == 0 and len(peer.received) == 6:
            await peer.end()
        elif peer.number == 1:
            await peer.reply(message, call(message["body"]["call_id"]))

    async with serving(Scripted(on_frame=lose_the_first)) as script, connected(script) as transport:
        await asyncio.gather(*(transport.send(propose(f"c{number}")) for number in range(5)))
    again = [one["body"]["call_id"] for one in script.peers[1].received if one["type"] == "propose"]
    assert again == ["c0", "c1", "c2", "c3", "c4"]


async def test_send_answered_503_is_asked_again_under_the_same_ref() -> None:
    async def busy_first(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] == "propose":
            busy = sum(one["type"] == "propose" for one in peer.received) < 3
            await peer.reply(message, {"code": "unavailable"} if busy else call(), 503 if busy else 200)

    async with serving(Scripted(on_frame=busy_first)) as script, connected(script) as transport:
        reply = await transport.send(propose())
    assert reply.status == 200
    assert len({frame["ref"] for frame in script.frames("propose")}) == 1


async def test_send_never_answered_is_unreachable_in_time() -> None:
    impatient = replace(QUICK, request_s=0.2)
    async with serving(Scripted()) as script:
        transport = WsTransport(script.url, lambda: "secret", impatient)
        with pytest.raises(Unreachable, match="may have been done"):
            await transport.send(propose())
        await transport.close()


async def test_send_where_nobody_listens_is_unreachable_and_says_where() -> None:
    async with serving(Scripted()) as script:
        url = script.url
    transport = WsTransport(url, lambda: "secret", replace(QUICK, request_s=0.3))
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        await transport.send(propose())
    await transport.close()


async def test_send_with_a_token_that_is_not_believed_is_unauthenticated_at_once() -> None:
    async def refuse(peer: Peer, message: dict[str, Any]) -> None:
        await peer.end(4401, "the token has expired")

    async with serving(Scripted(on_frame=refuse)) as script, connected(script) as transport:
        with pytest.raises(Unauthenticated, match="expired"):
            await transport.send(propose())
    assert len(script.peers) == 1


async def test_send_with_a_token_of_another_project_is_not_authorised_at_once() -> None:
    async def refuse(peer: Peer, message: dict[str, Any]) -> None:
        await peer.say(type="error", code="not_authorised", status=403, detail="of another project", ref=None)
        await peer.end(4403, "of another project")

    async with serving(Scripted(on_frame=refuse)) as script, connected(script) as transport:
        with pytest.raises(NotAuthorised, match="of another project"):
            await transport.send(propose())
    assert len(script.peers) == 1


async def test_send_after_the_token_expired_on_the_socket_goes_on_with_a_fresh_one() -> None:
    tokens = iter(["old", "new"])

    async def expire_the_old(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] != "propose":
            return
        if peer.received[0]["token"] == "new" or message["body"]["call_id"] == "c1":
            await peer.reply(message, call())
        else:
            await peer.end(4401, "expired")

    async with serving(Scripted(on_frame=expire_the_old)) as script:
        transport = WsTransport(script.url, lambda: next(tokens), QUICK)
        await transport.send(propose("c1"))
        reply = await transport.send(propose("c2"))
        await transport.close()
    assert reply.ok


async def test_send_after_the_token_was_withdrawn_on_the_socket_tries_it_once_more_and_gives_up() -> None:
    withdrawn = [False]

    async def withdraw(peer: Peer, message: dict[str, Any]) -> None:
        # A subscription may come between the two, and cutting it would be an attempt of its own.
        if message["type"] != "propose":
            return
        if withdrawn[0]:
            await peer.end(4401, "the token is not signed by a known issuer with EdDSA")
        else:
            withdrawn[0] = message["body"]["call_id"] == "c1"
            await peer.reply(message, call())

    async with serving(Scripted(on_frame=withdraw)) as script, connected(script) as transport:
        await transport.send(propose("c1"))
        with pytest.raises(Unauthenticated, match="known issuer"):
            await transport.send(propose("c2"))
    assert len(script.peers) == 2


async def test_send_to_a_peer_without_the_protocol_says_so() -> None:
    for script in (Scripted(refuse_sockets=404), Scripted(subprotocol=None)):
        async with serving(script), connected(script) as transport:
            with pytest.raises(NoWebSocket):
                await transport.send(propose())


async def test_send_over_words_that_are_no_messages_reconnects() -> None:
    async def babble_first(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] != "propose":
            return
        if peer.number == 0:
            await peer.socket.send_text("{not json")
        else:
            await peer.reply(message, call())

    async with serving(Scripted(on_frame=babble_first)) as script, connected(script) as transport:
        assert (await transport.send(propose())).ok


async def test_pushed_before_anybody_waits_is_kept() -> None:
    async def hold_and_decide(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] != "propose":
            return
        await peer.reply(message, call(message["body"]["call_id"], "held"), 202)
        await peer.say(type="tool_call_decided", cursor="k1", **call())

    async with serving(Scripted(on_frame=hold_and_decide)) as script, connected(script) as transport:
        assert (await transport.send(propose())).status == 202
        # Whatever was said before its answer has been read by then.
        await transport.send(propose("c2"))
        pushed = await transport.pushed(KEY, DEADLINE_S)
    assert pushed is not None
    assert pushed["status"] == "released"
    assert script.frames("subscribe") == []


async def test_pushed_for_a_call_of_another_process_subscribes_and_reads_the_snapshot() -> None:
    async def snapshot(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":
            channel = message["channels"][0]
            await peer.say(type="snapshot", channel=channel, items=[call(status="denied")], cursor="k1")

    async with serving(Scripted(on_frame=snapshot)) as script, connected(script) as transport:
        pushed = await transport.pushed(KEY, DEADLINE_S)
    assert pushed is not None
    assert pushed["status"] == "denied"
    assert script.frames("subscribe")[0]["channels"] == ["calls:run/c1"]


async def test_pushed_across_a_lost_connection_subscribes_anew_and_reads_the_snapshot() -> None:
    async def lose_and_show(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] == "propose":
            await peer.reply(message, call(status="held"), 202, cursor="k7")
        elif message["type"] == "subscribe" and peer.number == 0:
            await peer.end()
        elif message["type"] == "subscribe":
            await peer.say(type="snapshot", channel="calls:run/c1", items=[call()], cursor="k8")

    async with serving(Scripted(on_frame=lose_and_show)) as script, connected(script) as transport:
        await transport.send(propose())
        pushed = await transport.pushed(KEY, DEADLINE_S)
    assert pushed is not None
    assert pushed["status"] == "released"
    assert script.peers[1].received[1] == {"type": "subscribe", "channels": ["calls:run/c1"]}


@pytest.mark.parametrize(
    "said",
    [
        {"type": "authenticated", "subject": "bot", "roles": ["agent"]},
        {"type": "reply", "ref": "another", "status": 200, "body": {}},
        {"type": "pong", "ref": None},
        {"type": "error", "code": "quota", "detail": "too many messages: slow down", "ref": None},
        {"type": "tool_call_decided", **call("c2")},
    ],
    ids=lambda said: said["type"],
)
async def test_pushed_over_a_connection_lost_before_what_was_missed_came_still_gets_it(
    said: dict[str, Any],
) -> None:
    async def lose_twice(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] != "subscribe":
            return
        if peer.number < 2:
            await peer.say(**said, cursor="past the decision")
            await peer.end()
        elif "cursor" not in message:
            await peer.say(type="snapshot", channel="calls:run/c1", items=[call()], cursor="k9")

    async with serving(Scripted(on_frame=lose_twice)) as script, connected(script) as transport:
        pushed = await transport.pushed(KEY, 2.0)
    assert pushed is not None
    assert pushed["status"] == "released"
    assert len(script.peers) == 3


async def test_pushed_after_resync_required_tells_the_waiting_one_to_read() -> None:
    async def overflow(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":
            await peer.say(type="resync_required", cursor="k1")

    async with serving(Scripted(on_frame=overflow)) as script, connected(script) as transport:
        started = asyncio.get_running_loop().time()
        assert await transport.pushed(KEY, DEADLINE_S) is None
        assert asyncio.get_running_loop().time() - started < DEADLINE_S / 2
    assert len(script.peers) == 1


async def test_close_with_requests_open_fails_them() -> None:
    async with serving(Scripted()) as script:
        transport = WsTransport(script.url, lambda: "secret", QUICK)
        sending = asyncio.create_task(transport.send(propose()))
        await script.until(lambda: script.frames("propose"))
        await transport.close()
        with pytest.raises(Unreachable, match="closed"):
            await sending


async def test_auto_where_sockets_are_refused_moves_to_rest_with_the_same_key() -> None:
    async def rest(asked: Asked) -> Response:
        return JSONResponse(call())

    async with serving(Scripted(on_http=rest, refuse_sockets=403)) as script:
        transport = AutoTransport(script.url, lambda: "secret", QUICK)
        request = propose()
        assert (await transport.send(request)).ok
        assert (await transport.send(propose("c2"))).ok
        await transport.close()
    first = script.asked[0]
    assert (first.method, first.path) == ("POST", "/v1/executions/run/tool-calls")
    assert first.headers["idempotency-key"] == request.ref
    assert first.headers["authorization"] == "Bearer secret"
    assert first.json() == {"call_id": "c1", "tool": "pay", "arguments": {}}


async def test_auto_by_websocket_only_does_not_fall_back() -> None:
    async with serving(Scripted(refuse_sockets=404)) as script:
        transport = AutoTransport(script.url, lambda: "secret", QUICK, "ws")
        with pytest.raises(NoWebSocket):
            await transport.send(propose())
        await transport.close()
    assert script.asked == []


async def test_auto_decision_without_a_push_reads_the_call() -> None:
    async def rest(asked: Asked) -> Response:
        return JSONResponse(call(status="denied"))

    async with serving(Scripted(on_http=rest)) as script:
        transport = AutoTransport(script.url, lambda: "secret", QUICK)
        reply = await transport.decision(KEY, DEADLINE_S)
        await transport.close()
    assert reply.body["status"] == "denied"
    assert script.asked[0].path == "/v1/executions/run/tool-calls/c1"
