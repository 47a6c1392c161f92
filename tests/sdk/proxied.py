"""A gateway of one run, behind a proxy that answers for it while it is away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.responses import JSONResponse, PlainTextResponse, Response

from tests.sdk.desk import Desk, Resource, ended, granted
from tests.sdk.scripted import Asked, Scripted


@dataclass
class Proxied:
    """A gateway of one run over REST, and a proxy before it that answers polls itself for a while.

    Attributes:
        outage: what the proxy answers, so many times; None: for ever.
    """

    status: int
    times: int | None
    page: Callable[[int], Response] = lambda status: PlainTextResponse("<html>Bad gateway</html>", status)
    call: Resource = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    polls: int = 0

    def scripted(self) -> Scripted:
        return Scripted(on_http=self.http, refuse_sockets=404)

    async def http(self, asked: Asked) -> Response:
        self.paths.append(asked.path)
        if asked.method == "GET":
            self.polls += 1
            if self.times is None or self.polls <= self.times:
                return self.page(self.status)
            if "/requests/" in asked.path:
                return JSONResponse({"request_id": "q", "status": "answered", "response": "GB29"})
            return JSONResponse(granted(self.call, self.call["arguments"]))
        return self._written(asked)

    def _written(self, asked: Asked) -> Response:
        last = asked.path.rpartition("/")[2]
        if last == "tool-calls":
            held = ended(status="held")
            _, self.call = Desk(judge=held).on_propose(
                {"execution_id": "e1", "body": {"call_id": "c1", **asked.json()}}
            )
            return JSONResponse(self.call, 202)
        if last == "consume":
            has = {"status": "consumed", "attempt_id": asked.json()["attempt_id"]}
            return JSONResponse({**self.call, **has})
        if last == "result":
            return JSONResponse({**self.call, "status": "succeeded"})
        if last == "requests":
            return JSONResponse({"request_id": asked.json()["request_id"], "status": "open"}, 201)
        return JSONResponse({"execution_id": "e1", "state": "running"}, 201)

    @property
    def ended_as(self) -> list[str]:
        """How the run was finished, if it was."""
        last = [path.rpartition("/")[2] for path in self.paths]
        return [word for word in last if word in ("complete", "fail", "cancel")]
