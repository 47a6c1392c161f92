"""A gateway with one agent that asks one question, and the person at the terminal who chats with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from starlette.responses import JSONResponse, Response, StreamingResponse

from placet.cli import prompting, unclaimed
from tests.sdk.scripted import Asked

QUESTION: dict[str, Any] = {
    "hold_id": "h1",
    "request_id": "r1",
    "execution_id": "c1",
    "status": "open",
    "kind": "decision",
    "question": "Where?",
    "digest": "d" * 64,
    "options": [{"id": "production", "label": "Production"}, "staging"],
}
PERMISSION: dict[str, Any] = {
    **QUESTION,
    "kind": "permission",
    "options": [],
    "asks": {"tool": "shell", "action": "rm -rf build", "risk": "high", "remember": True},
}
VIEW_TEXT = f"placet-view 5\nquestion: Where?\ndigest: {'d' * 64}\ntool: shell\naction: rm -rf build\n"
VIEW_DIGEST = sha256(VIEW_TEXT.encode()).hexdigest()
REFUSALS = {
    "unknown_option": (422, "the value is none of the options"),
    "invalid_arguments": (422, "value.REGION: it does not fit"),
    "already_decided": (409, "mia decided it first"),
    "not_authorised": (403, "an agent's token cannot decide"),
}


def event(name: str, **body: Any) -> str:
    return f"id: k\nevent: {name}\ndata: {json.dumps(body)}\n\n"


@dataclass
class Desk:
    """A gateway with one agent, which asks one question, several times; and the person at the terminal.

    Attributes:
        question: what the agent asks.
        times: how often the stream tells of it.
        codes: what the gateway says to each answer; it accepts one more.
        messages: what the gateway says to each message; it accepts all others.
        closed: what the stream tells of the question's end.
        away: no message is accepted until the person was prompted twice.
        says: what the agent says at the end.
        is_decidable: whether the person may decide the question.
        typed: what the person types at each prompt.
        prompts: what the person was prompted with.
    """

    question: dict[str, Any] = field(default_factory=lambda: QUESTION)
    times: int = 1
    codes: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    prompts: list[tuple[str, bool]] = field(default_factory=list)
    claims: int = 1
    ends: str = "completed"
    closed: dict[str, Any] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    away: bool = False
    says: str = "done"
    is_decidable: bool = True

    def __post_init__(self) -> None:
        self.looked = asyncio.Event()

    async def http(self, asked: Asked) -> Response:
        if asked.path == "/agent/chat":
            if self.away and len(self.prompts) < 2:
                return JSONResponse({"code": "unavailable", "detail": "not now"}, 503)
            if self.messages:
                return JSONResponse({"code": self.messages.pop(0), "detail": "it is refused"}, 422)
            return StreamingResponse(self.stream(), media_type="text/event-stream")
        if asked.path == "/v1/holds":
            is_asked = dict(asked.params) == {"status": "open", "decidable": "me", "prefix": "h1"}
            items = [self.question] if is_asked and self.is_decidable else []
            return JSONResponse({"items": items, "next_cursor": None})
        if asked.path == "/v1/holds/h1":
            return JSONResponse(self.question)
        if asked.path == "/v1/holds/h1/view":
            return JSONResponse({"hold_id": "h1", "text": VIEW_TEXT, "view_digest": VIEW_DIGEST})
        if asked.path.endswith("/decision"):
            if not self.codes:
                return JSONResponse({"status": "resolved", "decision_id": "d1"})
            code = self.codes.pop(0)
            status, detail = REFUSALS[code]
            errors = [{"path": "value.REGION", "message": detail}]
            return JSONResponse({"code": code, "status": status, "detail": detail, "errors": errors}, status)
        if "/turns/" in asked.path:
            self.looked.set()
            return JSONResponse({"status": "waiting", "claims": self.claims, "agent": "nobodyhome"})
        if asked.path == "/v1/executions/c1":
            return JSONResponse({"execution_id": "c1", "state": "running"})
        return JSONResponse({"code": "not_found", "detail": f"no {asked.path}"}, 404)

    async def stream(self) -> AsyncIterator[str]:
        if unclaimed.UNCLAIMED_AFTER_S < 1:
            await self.looked.wait()
        for _ in range(self.times):
            yield event("hitl_requested", **self.question)
        if self.closed:
            yield event("hitl_resolved", **self.closed)
        if self.ends == "failed":
            yield event("error", code="failed", detail="no such plan", turn_id="t")
            return
        yield event("message", text=self.says)
        yield event("complete", status="completed")

    def line(self, prompt: str, hidden: bool, watch: object) -> str:
        self.prompts.append((prompt, hidden))
        if not self.typed:
            raise prompting.InputEnded("it ends")
        return self.typed.pop(0)
