"""A scripted gateway that gives one turn to a worker again and again, until the turn is over."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import JSONResponse, Response

from placet import AsyncPlacet
from placet.transport.port import Patience
from tests.sdk.claimed import TURN
from tests.sdk.scripted import QUICK, Asked, Scripted, serving

PATIENCE_S = 60.0
LONGEST = 100


@dataclass
class Turns:
    """The turn, and the questions that were asked in it or elsewhere.

    Attributes:
        told: what happened, a line each.
        delays: by number of a reply, how long it is on its way.
        answers: what a person answers to a question, as soon as it is asked.
        calls: what the calls become, one change for each time that one is read; empty if it is not found.
        away: the reports (reply, yield, end) that are answered 503, each so often.
        lost: renewals are refused.
    """

    told: list[str] = field(default_factory=list)
    delays: dict[int, float] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)
    away: dict[str, int] = field(default_factory=dict)
    lost: bool = False
    lease_s: float = 30.0
    over: asyncio.Event = field(default_factory=asyncio.Event)
    _status: str = "waiting"
    _attempt: str = ""
    _replies: int = 0
    _requests: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def http(self, asked: Asked) -> Response:
        kind = asked.path.rpartition("/")[2]
        body = asked.json() if asked.body else {}
        if asked.method == "GET" and "/tool-calls/" in asked.path:
            call = self.calls.pop(0) if len(self.calls) > 1 else self.calls[0]
            return JSONResponse(call or {"code": "not_found"}, 200 if call else 404)
        if asked.method == "GET":
            return JSONResponse(self._requests[kind])
        if "attempt_id" in body and kind != "claim" and body["attempt_id"] != self._attempt:
            return JSONResponse({"code": "already_consumed", "detail": "another attempt has it"}, 409)
        if self.away.get(kind, 0) > 0:
            self.away[kind] -= 1
            return JSONResponse({"code": "unavailable", "detail": "Kafka is away"}, 503)
        found: Response = await getattr(self, f"on_{kind}")(body)
        return found

    async def on_claim(self, body: dict[str, Any]) -> Response:
        while self._status != "waiting":
            await asyncio.sleep(0.01)
        self._status, self._attempt = "claimed", body["attempt_id"]
        self.told.append("claim")
        turn = {**TURN, "attempt_id": body["attempt_id"], "replies": self._replies, "lease_until": _end(0)}
        return JSONResponse({"turn": turn, "lease_seconds": self.lease_s})

    async def on_renew(self, body: dict[str, Any]) -> Response:
        if self.lost:
            return JSONResponse({"code": "already_consumed", "detail": "another attempt has it"}, 409)
        self.told.append("renew")
        return JSONResponse({**TURN, "lease_until": _end(len(self.told))})

    async def on_reply(self, body: dict[str, Any]) -> Response:
        number, text = body["number"], body["text"]
        await asyncio.sleep(self.delays.pop(number, 0.0))
        if len(text) > LONGEST:
            return JSONResponse({"code": "too_large", "detail": "text"}, 413)
        if number > self._replies + 1:
            return JSONResponse({"code": "invalid", "detail": f"the next is {self._replies + 1}"}, 422)
        if number > self._replies:
            self._replies = number
            self.told.append(f"reply {number}: {text}")
        return JSONResponse(TURN)

    async def on_yield(self, body: dict[str, Any]) -> Response:
        hold_id = body.get("hold_id")
        own = [one for one in self._requests.values() if one["execution_id"] == TURN["conversation_id"]]
        held = [one for one in own if one["hold_id"] == hold_id]
        if hold_id is not None and not held and not str(hold_id).startswith("call-"):
            self.told.append("yield refused")
            return JSONResponse({"code": "invalid", "detail": "hold_id: there is no such hold"}, 422)
        self.told.append(f"yield {hold_id}")
        self._status, self._attempt = "waiting", ""
        if held and held[0]["status"] == "open":
            self._answer(held[0])
        if hold_id is not None and not held:
            # Of a call: a person settles it later.
            self._status = "suspended"
            self.over.set()
        return JSONResponse(TURN)

    async def on_end(self, body: dict[str, Any]) -> Response:
        self.told.append(f"{body['outcome']}: {body.get('reply') or body.get('error')}")
        self._status = "over"
        self.over.set()
        return JSONResponse(TURN)

    async def on_requests(self, body: dict[str, Any]) -> Response:
        request_id = body["request_id"]
        if request_id not in self._requests:
            self.told.append(f"asked {body['question']}")
            more = {"hold_id": f"h{len(self._requests) + 1}", "status": "open", "kind": body.get("kind")}
            execution_id = body.get("execution_id") or "another"
            self._requests[request_id] = {**body, **more, "execution_id": execution_id}
        return JSONResponse(self._requests[request_id], 201)

    def again(self) -> None:
        """Have another attempt begin, as after the end of a lease."""
        self._status = "waiting"

    def _answer(self, request: dict[str, Any]) -> None:
        if request["question"] in self.answers:
            request.update(status="resolved", response=self.answers[request["question"]])
        else:
            self._status = "suspended"
            self.over.set()


async def worked(
    turns: Turns,
    agent: Any,
    *,
    wait_s: float | None = None,
    token: Any = "t",
    patience: Patience = QUICK,
    concurrency: int = 16,
) -> list[str]:
    """What a worker did until the turn was over, or waits for a person."""
    async with (
        serving(Scripted(on_http=turns.http, refuse_sockets=404)) as script,
        AsyncPlacet(script.url, token=token, transport="rest", patience=patience) as client,
    ):
        working = asyncio.create_task(client.serve({"bot": agent}, wait_s=wait_s, concurrency=concurrency))
        over = asyncio.create_task(turns.over.wait())
        ended, _ = await asyncio.wait(
            {working, over}, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED
        )
        for task in (working, over):
            task.cancel()
        found = await asyncio.gather(working, return_exceptions=True)
    assert ended == {over}, (turns.told, found)
    return turns.told


def _end(number: int) -> str:
    """Another end of the lease for each number."""
    return f"2026-11-28T12:{number // 60:02}:{number % 60:02}Z"
