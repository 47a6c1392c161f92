"""Long messages on the WebSocket: refused before they are sent, or for themselves alone."""

import asyncio
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from placet import asks
from placet.transport.auto import AutoTransport
from placet.transport.port import FIRST_MAX_BYTES, MESSAGE_MAX_BYTES, Reply, Request
from placet.transport.socket import SUBPROTOCOL, MessageTooLarge, closed_error, open_socket
from placet.transport.ws import SUBSCRIBED_AT_ONCE
from tests.sdk.scripted import DEADLINE_S, QUICK, Peer, Scripted, serving
from tests.sdk.test_ws import call, connected, propose


def long(call_id: str, chars: int) -> Request:
    return asks.propose(
        "run", {"call_id": call_id, "tool": "pay", "arguments": {"a": "é" * (chars // 2)}}, None
    )


async def answering(peer: Peer, message: dict[str, Any]) -> None:
    if message["type"] == "authenticate":
        await peer.say(type="authenticated")
    elif message["type"] == "propose":
        await peer.reply(message, call(message["body"]["call_id"]))


async def test_send_over_the_bound_is_refused_before_it_is_sent_and_the_others_go_on() -> None:
    async with serving(Scripted(on_frame=answering)) as script, connected(script) as transport:
        requests = propose("c1"), long("c2", MESSAGE_MAX_BYTES), propose("c3")
        replies = await asyncio.gather(*(transport.send(one) for one in requests))
    assert [one.status for one in replies] == [200, 413, 200]
    assert replies[1].body["code"] == "too_large"
    assert len(script.peers) == 1
    assert {one["body"]["call_id"] for one in script.frames("propose")} == {"c1", "c3"}


async def test_send_over_the_bound_by_rest_is_refused_likewise() -> None:
    async with serving(Scripted()) as script:
        transport = AutoTransport(script.url, lambda: "secret", QUICK, "rest")
        reply = await transport.send(long("c1", MESSAGE_MAX_BYTES))
        await transport.close()
    assert (reply.status, reply.body["code"]) == (413, "too_large")
    assert script.asked == []


@pytest.mark.parametrize("mode", ["ws", "rest"])
async def test_send_of_what_is_no_text_is_refused_before_it_is_sent(mode: Any) -> None:
    async with serving(Scripted(on_frame=answering)) as script:
        transport = AutoTransport(script.url, lambda: "secret", QUICK, mode)
        reply = await transport.send(asks.finish_execution("run", "failed", "\ud800"))
        await transport.close()
    assert (reply.status, reply.body["code"]) == (400, "malformed")
    assert script.asked == []


async def test_send_of_what_another_bound_closes_ends_for_its_size_alone() -> None:
    most = 300_000

    async def bounded(peer: Peer, message: dict[str, Any]) -> None:
        if len(str(message)) > most:
            await peer.end(1009, f"over {most}")
        elif message["type"] != "propose" or message["body"]["call_id"] != "waits" or peer.number:
            await answering(peer, message)

    async with serving(Scripted(on_frame=bounded)) as script, connected(script) as transport:
        waiting = asyncio.create_task(transport.send(propose("waits")))
        await script.until(lambda: script.frames("propose"))
        refused = await transport.send(long("long", 900_000))
        waited = await waiting
        after = await transport.send(long("shorter", 400_000))
    assert refused.status == 413
    assert f"over {most}" in refused.body["detail"]
    assert (waited, after.status) == (Reply(200, call("waits")), 200)
    sent = [one["body"]["call_id"] for one in script.frames("propose")]
    assert sent == ["waits", "long", "waits", "shorter"]


async def test_send_of_more_than_a_stranger_may_waits_until_the_token_is_believed() -> None:
    early: list[str] = []

    async def believe_late(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] != "propose":
            return
        if message["body"]["call_id"] == "short":
            early.extend(one["body"]["call_id"] for one in peer.received if one["type"] == "propose")
            await peer.say(type="authenticated")
        if peer.number == 0 and message["body"]["call_id"] == "long":
            await peer.end()
        elif peer.number:
            await answering(peer, message)

    async with serving(Scripted(on_frame=believe_late)) as script, connected(script) as transport:
        requests = long("long", FIRST_MAX_BYTES), propose("short")
        replies = await asyncio.gather(*(transport.send(one) for one in requests))
    assert [one.status for one in replies] == [200, 200]
    assert early == ["short", "short"]
    assert len(script.peers) == 2


async def test_pushed_for_many_calls_after_a_lost_connection_subscribes_in_short_messages() -> None:
    many = SUBSCRIBED_AT_ONCE + 1
    keys = [("e" * 128, f"{number:0128}") for number in range(many)]
    first: list[str] = []

    async def lose_and_show(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] != "subscribe":
            return
        if peer.number == 0:
            first.extend(message["channels"])
            if len(first) == many:
                await peer.end()
            return
        for channel in message["channels"]:
            execution_id, _, call_id = channel.removeprefix("calls:").partition("/")
            shown = {"execution_id": execution_id, "call_id": call_id, "status": "released"}
            await peer.say(type="snapshot", channel=channel, items=[shown])

    async with serving(Scripted(on_frame=lose_and_show)) as script, connected(script) as transport:
        pushed = await asyncio.gather(*(transport.pushed(key, DEADLINE_S) for key in keys))
    assert all(one is not None and one["status"] == "released" for one in pushed)
    again = [one for one in script.peers[1].received if one["type"] == "subscribe"]
    assert [len(one["channels"]) for one in again] == [SUBSCRIBED_AT_ONCE, 1]
    assert max(len(str(one)) for one in again) <= FIRST_MAX_BYTES


async def test_connection_that_ends_while_much_is_still_to_be_written_ends_as_any_other() -> None:
    async def unread(socket: ServerConnection) -> None:
        await socket.recv()
        async for _ in socket:
            pass

    async with serve(unread, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL], max_size=1_000) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        with pytest.raises(ConnectionClosed) as caught:
            await _shout(f"http://127.0.0.1:{port}")
    refused = closed_error(caught.value, served=True)
    assert isinstance(refused, MessageTooLarge)
    assert refused.acts == "stop"


async def _shout(url: str) -> None:
    async with open_socket(url, lambda: "t", DEADLINE_S) as connection:
        await connection.send("x" * 20_000_000)
        await connection.recv()


async def test_close_for_a_message_that_was_given_up_refuses_no_other() -> None:
    """The others are innocent: they are sent again on the next connection."""
    long_came = asyncio.Event()

    async def bounded(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] == "propose" and message["body"]["call_id"] == "long":
            long_came.set()
        elif message["type"] != "propose" or peer.number:
            await answering(peer, message)

    async with serving(Scripted(on_frame=bounded)) as script, connected(script) as transport:
        waiting = asyncio.create_task(transport.send(propose("waits")))
        await script.until(lambda: script.frames("propose"))
        given_up = asyncio.create_task(transport.send(long("long", 900_000)))
        await asyncio.wait_for(long_came.wait(), DEADLINE_S)
        given_up.cancel()
        await asyncio.wait([given_up])
        await script.peers[0].end(1009, "over 300000")
        assert await waiting == Reply(200, call("waits"))
