import json
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from placet.errors import NotAuthorised, Unauthenticated, Unreachable
from placet.models import Event
from placet.transport.auto import Mode
from placet.transport.feed import feed
from placet.transport.sse import SseParser
from tests.sdk.scripted import QUICK, Asked, Peer, Scripted, serving


async def follow(script: Scripted, count: int, cursor: str | None = None, mode: Mode = "auto") -> list[Event]:
    found: list[Event] = []
    async with aclosing(feed(script.url, lambda: "secret", ("holds",), cursor, QUICK, mode)) as stream:
        async for event in stream:
            found.append(event)
            if len(found) == count:
                break
    return found


async def test_feed_over_a_lost_connection_resumes_from_its_cursor() -> None:
    async def tell(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] != "subscribe":
            return
        first = 0 if message.get("cursor") is None else int(message["cursor"]) + 1
        for number in range(first, first + 2):
            await peer.say(type="hold_changed", cursor=str(number), hold_id="h")
        await peer.end()

    async with serving(Scripted(on_frame=tell)) as script:
        found = await follow(script, 6)
    assert [event.cursor for event in found] == ["0", "1", "2", "3", "4", "5"]
    assert found[0] == Event("hold_changed", "0", {"hold_id": "h"})


async def test_feed_told_to_resync_tells_its_reader_and_starts_anew() -> None:
    async def tell(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] != "subscribe":
            return
        if message.get("cursor") == "old":
            await peer.say(type="resync_required", cursor="old")
        else:
            await peer.say(type="snapshot", channel="holds", items=[], cursor="new")

    async with serving(Scripted(on_frame=tell)) as script:
        found = await follow(script, 2, cursor="old")
    assert [event.type for event in found] == ["resync_required", "snapshot"]


async def test_feed_of_a_snapshot_in_parts_is_one_event() -> None:
    async def tell(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":
            part = {"type": "snapshot", "channel": "holds", "total": 3}
            await peer.say(**part, items=[{"hold_id": "1"}, {"hold_id": "2"}], more=True, cursor="within")
            await peer.say(**part, items=[{"hold_id": "3"}], more=False, cursor="after")

    async with serving(Scripted(on_frame=tell)) as script:
        (event,) = await follow(script, 1)
    assert (event.type, event.cursor, event.body["total"]) == ("snapshot", "after", 3)
    assert [item["hold_id"] for item in event.body["items"]] == ["1", "2", "3"]


async def test_feed_cut_off_within_a_snapshot_forgets_its_parts_and_asks_as_before() -> None:
    subscriptions: list[Any] = []

    async def tell(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] != "subscribe":
            return
        subscriptions.append(message.get("cursor"))
        more = len(subscriptions) == 1
        hold = {"hold_id": "seen twice"}
        await peer.say(type="snapshot", channel="holds", items=[hold], more=more, total=2, cursor="within")
        if more:
            await peer.end()

    async with serving(Scripted(on_frame=tell)) as script:
        (event,) = await follow(script, 1)
    assert [item["hold_id"] for item in event.body["items"]] == ["seen twice"]
    assert subscriptions == [None, None]


async def test_feed_told_to_resync_within_a_snapshot_forgets_its_parts() -> None:
    subscribed = 0

    async def tell(peer: Peer, message: dict[str, Any]) -> None:
        nonlocal subscribed
        if message["type"] != "subscribe":
            return
        subscribed += 1
        hold = {"hold_id": str(subscribed)}
        await peer.say(type="snapshot", channel="holds", items=[hold], more=subscribed == 1, cursor="c")
        if subscribed == 1:
            await peer.say(type="resync_required", cursor="c")

    async with serving(Scripted(on_frame=tell)) as script:
        found = await follow(script, 2)
    assert [event.type for event in found] == ["resync_required", "snapshot"]
    assert found[1].body["items"] == [{"hold_id": "2"}]


async def test_feed_where_sockets_are_refused_reads_server_sent_events() -> None:
    async def stream(asked: Asked) -> Response:
        after = int(asked.headers.get("last-event-id", "0"))
        lines = [
            ": alive",
            f"id: {after + 1}",
            "event: hold_resolved",
            f"data: {json.dumps({'hold_id': 'h'})}",
            "",
            "",
        ]
        return PlainTextResponse("\n".join(lines), media_type="text/event-stream")

    async with serving(Scripted(on_http=stream, refuse_sockets=404)) as script:
        found = await follow(script, 3)
    assert [(event.type, event.cursor) for event in found] == [("hold_resolved", str(n)) for n in (1, 2, 3)]
    assert script.asked[0].params == {"channels": "holds"}


@pytest.mark.parametrize("is_told", [True, False])
async def test_feed_with_a_token_of_another_project_is_not_authorised_at_once(is_told: bool) -> None:
    async def refuse(peer: Peer, message: dict[str, Any]) -> None:
        if is_told:
            await peer.say(type="error", code="not_authorised", status=403, detail="of another project")
        await peer.end(4403, "of another project")

    async with serving(Scripted(on_frame=refuse)) as script:
        with pytest.raises(NotAuthorised, match="of another project"):
            await follow(script, 1)
    assert len(script.peers) == 1


@pytest.mark.parametrize("mode", ["ws", "rest"])
async def test_feed_with_a_token_that_is_not_believed_is_unauthenticated(mode: Mode) -> None:
    async def refuse_socket(peer: Peer, message: dict[str, Any]) -> None:
        await peer.end(4401, "unknown")

    async def refuse(asked: Asked) -> Response:
        return JSONResponse({"code": "unauthenticated"}, 401)

    async with serving(Scripted(on_frame=refuse_socket, on_http=refuse)) as script:
        with pytest.raises(Unauthenticated):
            await follow(script, 1, mode=mode)


async def test_feed_where_nobody_listens_is_unreachable() -> None:
    async with serving(Scripted()) as script:
        url = script.url
    stream = feed(url, lambda: "t", ("holds",), None, replace(QUICK, request_s=0.2))
    with pytest.raises(Unreachable):
        await anext(stream)


@pytest.mark.parametrize(
    ("lines", "event"),
    [
        (["data: a", "data: b", ""], ("message", "a\nb", "")),
        (["event:x", "data:1", "id:7", ""], ("x", "1", "7")),
        (["event: x", ""], None),
        (["id: 7", ""], ("", "", "7")),
        ([":comment", ""], None),
    ],
)
def test_sse_parser_reads_the_format(lines: list[str], event: tuple[str, str, str] | None) -> None:
    parser = SseParser()
    assert [parser.feed(line) for line in lines][-1] == event


def test_sse_parser_keeps_the_last_id_for_later_events() -> None:
    parser = SseParser()
    for line in ("id: 7", "data: a", ""):
        parser.feed(line)
    assert [parser.feed(line) for line in ("data: b", "")][-1] == ("message", "b", "7")


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_feed_told_of_what_passes_connects_again_with_its_cursor(status: int) -> None:
    """Over the WebSocket, and over a stream, whose token may also have expired."""
    problem = {"type": "error", "code": "unavailable", "status": status, "detail": "not now"}
    told: list[Any] = []

    async def tell(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":
            told.append(message.get("cursor"))
            await peer.say(type="hold_changed", cursor=str(len(told)), hold_id="h")
            await peer.say(**problem, cursor=str(len(told)))

    async def stream(asked: Asked) -> Response:
        told.append(asked.headers.get("last-event-id"))
        found = {"type": "hold_changed", "cursor": str(len(told)), "hold_id": "h"}
        expired = {"code": "unauthenticated", "status": 401} if status == 408 else {}
        gone = {**problem, **expired, "cursor": str(len(told))}
        text = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in (found, gone))
        return Response(text, media_type="text/event-stream")

    modes: tuple[Mode, Mode] = ("ws", "rest")
    for mode in modes:
        told.clear()
        async with serving(Scripted(on_http=stream, on_frame=tell)) as script:
            found = await follow(script, 3, mode=mode)
        assert [event.type for event in found] == ["hold_changed"] * 3
        assert told == [None, "1", "2"]
