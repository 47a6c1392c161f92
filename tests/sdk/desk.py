"""A scripted peer that plays one call's part: what it answers to a proposal, a consumption, a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import JSONResponse, Response

from schemas import canonical
from tests.sdk.scripted import Asked, Peer, Scripted

Resource = dict[str, Any]
Script = Callable[["Desk", Resource], Resource]


def digest_of(resource: Resource, arguments: Any) -> str:
    text = canonical.canonical(arguments)
    return canonical.call_digest(
        resource["tenant"], resource["agent"], resource["tool"], resource["tool_version"], text
    )


def released(desk: Desk, call: Resource) -> Resource:
    return granted(call, call["arguments"])


def granted(call: Resource, arguments: Any, **more: Any) -> Resource:
    grant = {"digest": digest_of(call, arguments), "grant_id": "g1", "decision_id": "d1", "token": None}
    return {**call, "status": "released", "approved_arguments": arguments, "grant": grant, **more}


def ended(**fields: Any) -> Script:
    return lambda desk, call: {**call, **fields}


@dataclass
class Desk:
    """Answers the messages of an agent; `judge` makes a proposal's answer."""

    judge: Script = released
    consumed: list[Resource] = field(default_factory=list)
    refuse_consumption: list[Resource] = field(default_factory=list)
    refuse_result: list[Resource] = field(default_factory=list)
    results: list[Resource] = field(default_factory=list)
    calls: dict[str, Resource] = field(default_factory=dict)
    finished: list[Resource] = field(default_factory=list)
    refuse_finish: list[Resource] = field(default_factory=list)
    started: list[Resource] = field(default_factory=list)
    lease_s: float | None = None
    heartbeats: list[Resource] = field(default_factory=list)
    refuse_heartbeat: list[Resource] = field(default_factory=list)
    # What becomes of a call, one change for each time that it is read.
    then: list[Resource] = field(default_factory=list)
    # What the run's state is, one for each time that it is read; then it is running.
    states: list[str] = field(default_factory=list)
    tools: dict[str, Resource] = field(default_factory=dict)
    # Whether what is let through is consumed by the attempt that the proposal names, as a gateway does.
    at_once: bool = False

    def scripted(self) -> Scripted:
        return Scripted(on_http=self.http, on_frame=self.frame)

    async def http(self, asked: Asked) -> Response:
        name = asked.path.rpartition("/")[2]
        call = self.calls.get(name)
        if asked.method == "GET" and call is not None:
            call.update(self.then.pop(0) if self.then else {})
            return JSONResponse(call)
        if asked.method == "GET" and asked.path.endswith(f"/tools/{name}") and name in self.tools:
            return JSONResponse(self.tools[name])
        if asked.method == "GET" and asked.path.endswith(f"/executions/{name}"):
            state = self.states.pop(0) if self.states else "running"
            return JSONResponse({"execution_id": name, "state": state})
        return JSONResponse({"code": "not_found", "detail": asked.path}, 404)

    async def frame(self, peer: Peer, message: Resource) -> None:
        answer = getattr(self, f"on_{message['type']}", None)
        if answer is not None:
            status, body = answer(message)
            await peer.reply(message, body, status)

    def on_start_execution(self, message: Resource) -> tuple[int, Resource]:
        self.started.append(message["body"])
        return 201, {"state": "running", **message["body"]}

    def on_finish_execution(self, message: Resource) -> tuple[int, Resource]:
        if self.refuse_finish:
            problem = self.refuse_finish.pop(0)
            return problem["status"], problem
        self.finished.append(message["body"])
        return 200, {"execution_id": message["execution_id"], "state": message["body"]["outcome"]}

    def on_propose(self, message: Resource) -> tuple[int, Resource]:
        body = dict(message["body"])
        attempt_id = body.pop("attempt_id", None)
        call = {
            "tenant": "acme",
            "execution_id": message["execution_id"],
            "revision": 1,
            "agent": "billing-bot",
            "tool_version": "v1",
            **body,
        }
        call["digest"] = digest_of(call, body["arguments"])
        call = self.judge(self, call)
        if self.at_once and call["status"] == "released" and attempt_id is not None:
            self.consumed.append(
                {"call_id": call["call_id"], "digest": call["digest"], "attempt_id": attempt_id}
            )
            call |= {"status": "consumed", "attempt_id": attempt_id, "lease_seconds": self.lease_s}
        self.calls[call["call_id"]] = call
        return (202 if call["status"] in ("held", "proposed") else 200), call

    def on_consume(self, message: Resource) -> tuple[int, Resource]:
        if self.refuse_consumption:
            problem = self.refuse_consumption.pop(0)
            self.calls[message["call_id"]].update(problem.pop("then", {}))
            return 409, problem
        self.consumed.append({"call_id": message["call_id"], **message["body"]})
        lease = {"lease_seconds": self.lease_s, "lease_until": "0"}
        has = {"status": "consumed", "attempt_id": message["body"]["attempt_id"]}
        return 200, {**self.calls[message["call_id"]], **has, **lease}

    def on_heartbeat(self, message: Resource) -> tuple[int, Resource]:
        self.heartbeats.append({"call_id": message["call_id"], **message["body"]})
        if self.refuse_heartbeat:
            problem = self.refuse_heartbeat.pop(0)
            return problem["status"], problem
        until = str(len(self.heartbeats))
        has = {"status": "consumed", "attempt_id": message["body"]["attempt_id"]}
        return 200, {**self.calls[message["call_id"]], **has, "lease_until": until}

    def on_result(self, message: Resource) -> tuple[int, Resource]:
        if self.refuse_result:
            problem = self.refuse_result.pop(0)
            return problem["status"], problem
        self.results.append({"call_id": message["call_id"], **message["body"]})
        return 200, {**self.calls[message["call_id"]], "status": message["body"]["outcome"]}
