"""A desk that keeps what it was told, as the log does, and may leave it unanswered."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import JSONResponse, Response

from tests.sdk.desk import Desk, Resource
from tests.sdk.scripted import Asked, Peer
from tests.sdk.test_secrets import delivered, sealed


@dataclass
class Keeping(Desk):
    """Each call and question has one state, whoever asks how often.

    Attributes:
        unanswered: what is done, and not answered, by message type.
        questions: by id, in the order in which they were opened.
    """

    unanswered: set[str] = field(default_factory=set)
    questions: dict[str, Resource] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)
    spent: set[str] = field(default_factory=set)

    async def frame(self, peer: Peer, message: Resource) -> None:
        if message["type"] not in self.unanswered:
            await super().frame(peer, message)
        elif (act := getattr(self, f"on_{message['type']}", None)) is not None:
            act(message)

    def on_propose(self, message: Resource) -> tuple[int, Resource]:
        known = self.calls.get(message["body"]["call_id"])
        if known is None:
            return super().on_propose(message)
        named = message["body"].get("attempt_id")
        is_others = known["status"] == "consumed" and named is not None and known.get("attempt_id") != named
        return (409, {"code": "already_consumed"}) if is_others else (200, known)

    def on_consume(self, message: Resource) -> tuple[int, Resource]:
        call, attempt = self.calls[message["call_id"]], message["body"]["attempt_id"]
        if attempt in self.spent or (call["status"] != "released" and call.get("attempt_id") != attempt):
            return 409, {"code": "already_consumed"}
        status, body = super().on_consume(message)
        call.update(status="consumed", attempt_id=attempt, lease_seconds=self.lease_s)
        return status, body

    def on_result(self, message: Resource) -> tuple[int, Resource]:
        status, body = super().on_result(message)
        if status >= 400:
            return status, body
        said = message["body"]
        self.calls[message["call_id"]].update(
            status=said["outcome"], output=said.get("output"), error=said.get("error") or ""
        )
        return status, body

    def on_request(self, message: Resource) -> tuple[int, Resource]:
        body = {"status": "open", **message["body"]}
        return 201, self.questions.setdefault(body["request_id"], body)

    def answer(self, request_id: str, **fields: Any) -> None:
        self.questions[request_id].update({"status": "resolved", "decision": "respond", **fields})

    def give(self, request_id: str, name: str, value: str) -> None:
        """Answer for a variable."""
        self.answer(request_id, response={name: sealed(value)}, given=[delivered(f"/{name}", value)])

    async def http(self, asked: Asked) -> Response:
        words = asked.path.split("/")
        if "requests" not in words:
            return await super().http(asked)
        question = self.questions[words[words.index("requests") + 1]]
        if words[-1] != "secrets":
            return JSONResponse(question)
        return self._take(question, json.loads(asked.body)["attempt_id"])

    def _take(self, question: Resource, attempt_id: str) -> Response:
        request_id = question["request_id"]
        if request_id in self.erased:
            return JSONResponse({"code": "expired"}, 409)
        if "given" not in question:
            return JSONResponse({"code": "not_released"}, 409)
        if self.taken.setdefault(request_id, attempt_id) != attempt_id:
            return JSONResponse({"code": "already_consumed"}, 409)
        if "take" in self.unanswered:
            return JSONResponse({"code": "unavailable"}, 503)
        return JSONResponse({"request_id": request_id, "secrets": question["given"]})
