"""`continue_chat` at a scripted gateway: what comes after the answer, however the turn is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet import AsyncPlacet, Refused, Responded
from tests.sdk.scripted import QUICK, Asked, Scripted, serving

Told = tuple[str, str, Mapping[str, Any]]
SAID: Told = ("1", "message", {"text": "before"})
ASKED: Told = ("2", "hitl_requested", {"request_id": "r1"})
OTHER: Told = ("3", "hitl_resolved", {"request_id": "r0"})
ANSWERED: Told = ("4", "hitl_resolved", {"request_id": "r1"})
REPLY: Told = ("5", "message", {"text": "after"})
OVER: Told = ("6", "complete", {"text": "go"})
ANEW: Told = ("7", "error", {"code": "unavailable", "detail": "too slow"})
PASSING: Told = ("", "error", {"code": "unavailable", "detail": "for now"})


async def continued(*connections: Sequence[Told], message_id: str | None = "m1") -> list[str]:
    """The types of the events, of a turn whose stream is cut so."""
    left = [*connections]

    async def http(asked: Asked) -> Response:
        if asked.path == "/agent/hitl/respond":
            body = {"status": "resolved", "decision_id": "d1", "request_id": "r1", "conversation_id": "c1"}
            return JSONResponse({**body, "message_id": message_id, "cursor": "now"})
        assert asked.params == {"conversation_id": "c1", "message_id": "m1"}
        text = "".join(
            f"{f'id: {key}' + chr(10) if key else ''}event: {kind}\ndata: {json.dumps(body)}\n\n"
            for key, kind, body in left.pop(0)
        )
        return Response(text, media_type="text/event-stream")

    async with (
        serving(Scripted(on_http=http)) as script,
        AsyncPlacet(script.url, token="t", patience=QUICK) as client,
    ):
        found = [event.type async for event in client.conversations.continue_chat("r1", "yes")]
    assert left == []
    return found


WHOLE = [SAID, ASKED, OTHER, ANSWERED, REPLY, OVER]


@pytest.mark.parametrize(
    ("connections", "wanted"),
    [
        ([WHOLE], ["message", "complete"]),
        ([WHOLE[:4], WHOLE[4:]], ["message", "complete"]),
        ([[*WHOLE[:4], PASSING], WHOLE[4:]], ["error", "message", "complete"]),
        ([[*WHOLE[:5], ANEW], WHOLE], ["message", "error", "message", "complete"]),
        ([[SAID, ASKED, OVER]], ["complete"]),
    ],
    ids=["at once", "cut", "cut for now", "anew", "over without the answer"],
)
async def test_what_comes_after_the_answer_is_shown_however_the_stream_is_cut(
    connections: list[list[Told]], wanted: list[str]
) -> None:
    assert await continued(*connections) == wanted


async def test_question_outside_of_a_turn_has_nothing_to_follow() -> None:
    assert await continued(message_id=None) == []


async def test_response_is_a_frozen_dataclass_with_the_turn() -> None:
    async def http(asked: Asked) -> Response:
        return JSONResponse({"status": "resolved", "decision_id": "d1", "message_id": None, "hold": {"x": 1}})

    async with serving(Scripted(on_http=http)) as script, AsyncPlacet(script.url, token="t") as client:
        told = await client.conversations.respond("r1", "yes")
    assert told == Responded("resolved", "d1")
    assert told.raw["hold"] == {"x": 1}


@pytest.mark.parametrize("message_id", ["m1", None])
async def test_turn_is_followed_to_its_end_and_a_conversation_through_all_turns(
    message_id: str | None,
) -> None:
    failed: Told = ("7", "error", {"code": "agent_failed", "turn_id": "m2"})
    events = [SAID, OVER, failed, ("8", "complete", {"text": "third"})]

    async def http(asked: Asked) -> Response:
        if "last-event-id" in asked.headers:
            # Nothing more comes, for ever.
            await asyncio.Event().wait()
        text = "".join(
            f"id: {key}\nevent: {kind}\ndata: {json.dumps(body)}\n\n" for key, kind, body in events
        )
        return Response(text, media_type="text/event-stream")

    async with (
        serving(Scripted(on_http=http)) as script,
        AsyncPlacet(script.url, token="t", patience=QUICK) as client,
    ):
        followed = client.conversations.follow("c1", message_id=message_id)
        found: list[str] = []
        async with aclosing(followed):
            async for event in followed:
                found.append(event.type)
                if len(found) == len(events):
                    break
    whole = ["message", "complete", "error", "complete"]
    assert found == (whole[:2] if message_id else whole)


async def test_message_that_is_no_unicode_text_is_refused_and_not_sent() -> None:
    async with (
        serving(Scripted()) as script,
        AsyncPlacet(script.url, token="t", agent="bot", patience=QUICK) as client,
    ):
        with pytest.raises(Refused, match="a lone surrogate is not Unicode text: the request was not sent"):
            await anext(client.conversations.chat("a\udcff"))
    assert script.asked == []
