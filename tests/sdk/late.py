"""A scripted gateway whose verdict on a turn's call comes late, and the workers that work on the turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import JSONResponse, Response

from placet import AsyncPlacet
from tests.sdk.claimed import TURN
from tests.sdk.desk import digest_of, granted
from tests.sdk.scripted import QUICK, Asked, Scripted, serving
from tests.sdk.turns import Turns

PATIENCE_S = 30.0
UNRECORDED = {"digest": "", "tool_version": "", "status": "proposed", "hold_id": None}


@dataclass
class Late(Turns):
    """The turn, one call in it, and its verdict: released by the policy, for the attempt that proposed it.

    Attributes:
        reads: how often the call is read before the verdict comes.
        unanswered: proposals that are decided and answered 503.
        lease_s: of the call, as of the turn.
        call: the call once it is decided.
    """

    reads: int = 2
    unanswered: int = 0
    call: dict[str, Any] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)
    heartbeats: int = 0
    idempotent: bool = False
    _proposed: dict[str, Any] = field(default_factory=dict)
    _worker: str = ""

    async def http(self, asked: Asked) -> Response:
        *_, before, kind = asked.path.split("/")
        if before == "tools":
            return JSONResponse(
                {"name": kind, "version": "v1", "inputSchema": {}, "idempotent": self.idempotent}
            )
        if kind == "claim":
            return await self._claimed(asked)
        if "/tool-calls" not in asked.path:
            return await super().http(asked)
        if asked.method == "GET":
            return self._read()
        return self._propose(asked.json()) if kind == "tool-calls" else self._change(kind, asked.json())

    async def _claimed(self, asked: Asked) -> Response:
        # A turn that was given back goes to the other worker.
        while self._worker == asked.headers["authorization"]:
            await asyncio.sleep(0.01)
        answer = await super().http(asked)
        self._worker = asked.headers["authorization"]
        return answer

    def _propose(self, body: Mapping[str, Any]) -> Response:
        if not self._proposed:
            self._proposed = {**body}
            if self.unanswered:
                self._decide()
        if self.unanswered:
            self.unanswered -= 1
            return JSONResponse({"code": "unavailable", "detail": "away"}, 503)
        if self.call.get("status") == "consumed" and body.get("attempt_id") != self.call["attempt_id"]:
            return JSONResponse({"code": "already_consumed", "detail": "another attempt has it"}, 409)
        return JSONResponse(self.call or self._as_proposed(), 200 if self.call else 202)

    def _as_proposed(self) -> dict[str, Any]:
        given = {key: value for key, value in self._proposed.items() if key != "attempt_id"}
        at = {"tenant": "acme", "execution_id": TURN["conversation_id"], "agent": "bot", "revision": 1}
        return {**given, **at, **UNRECORDED}

    def _decide(self) -> None:
        call = {**self._as_proposed(), "tool_version": "v1"}
        call["digest"] = digest_of(call, call["arguments"])
        has = {
            "status": "consumed",
            "attempt_id": self._proposed["attempt_id"],
            "lease_seconds": self.lease_s,
        }
        self.call = {**granted(call, call["arguments"]), **has}

    def _read(self) -> Response:
        self.reads -= 1
        if self.reads < 0 and not self.call:
            self._decide()
        return JSONResponse(self.call or self._as_proposed())

    def _change(self, kind: str, body: dict[str, Any]) -> Response:
        assert body["attempt_id"] == self.call["attempt_id"]
        if kind == "heartbeat":
            self.heartbeats += 1
            return JSONResponse({**self.call, "lease_until": str(self.heartbeats)})
        assert (kind, self.call["status"]) == ("result", "consumed")
        self.results.append(body)
        ends = {"status": body["outcome"], "output": body.get("output"), "error": body.get("error")}
        self.call |= ends
        return JSONResponse(self.call)


@asynccontextmanager
async def two_workers(late: Late, agent: Any) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Two workers as of two processes, each with a client of its own; the first one has the turn first."""
    async with (
        serving(Scripted(on_http=late.http, refuse_sockets=404)) as script,
        AsyncPlacet(script.url, token="first", transport="rest", patience=QUICK) as first,
        AsyncPlacet(script.url, token="second", transport="rest", patience=QUICK) as second,
        asyncio.timeout(PATIENCE_S),
    ):
        working = [asyncio.create_task(first.serve({"bot": agent}, wait_s=0))]
        while "claim" not in late.told:
            await asyncio.sleep(0.01)
        working.append(asyncio.create_task(second.serve({"bot": agent}, wait_s=0)))
        try:
            yield working
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
