"""Questions to people: from the agent to a reviewer's socket, from the answer to the agent, and the tool human_input.

One at a time, in turns with the floor; then many open questions, answered in random order at a fixed pace.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import grpc
from google.protobuf.json_format import ParseDict

from ops.bench.agent import in_flight, paced, run_id, start, timed
from ops.bench.bench import Bench
from ops.bench.floor import ROUNDS, opened_floor
from ops.bench.rest import Rest
from ops.bench.result import Figure, Result, Target, percentile
from ops.bench.site import Site
from ops.bench.websocket import Message, Socket, body_of, opened_socket
from schemas.human_input.v1.human_input_pb2 import RunToolRequest
from schemas.human_input.v1.human_input_pb2_grpc import HumanInputStub

# The stack also serves gRPC.
STACK = {"grpc_port": 0}
WITHIN_S = 120.0
# An execution has at most 200 open questions.
OF_ONE_EXECUTION = 150
PROMPT = {
    "name": "human_input",
    "arguments": {"prompt": "The next step deletes the account. Do you approve?"},
}


@dataclass(slots=True)
class Seen:
    """When a socket was sent a message about a question, by the request's id; its hold."""

    kind: str
    at: dict[str, float] = field(default_factory=dict)
    holds: dict[str, Message] = field(default_factory=dict)
    _wanted: dict[str, asyncio.Event] = field(default_factory=dict)

    def hear(self, message: Message) -> None:
        """Note a pushed message."""
        request_id = message.get("request_id")
        if message["type"] == self.kind and request_id:
            if request_id in self.at:
                raise RuntimeError(f"the question {request_id} was told twice")
            self.at[request_id] = time.perf_counter()
            self.holds[request_id] = message
            self._wanted.setdefault(request_id, asyncio.Event()).set()

    async def until(self, request_id: str) -> float:
        """Wait for the message about a question; the time at which it came."""
        await self._wanted.setdefault(request_id, asyncio.Event()).wait()
        return self.at[request_id]


class RpcTool(NamedTuple):
    """A generated client, and the metadata of its calls."""

    stub: Any
    metadata: tuple[tuple[str, str], ...]

    async def run(self) -> None:
        """Ask by gRPC, and wait for the task id."""
        answer = await self.stub.RunTool(ParseDict(PROMPT, RunToolRequest()), metadata=self.metadata)
        if not answer.result.struct_value["task_id"]:
            raise RuntimeError("RunTool gave no task id")


@dataclass(slots=True)
class Desk:
    """An agent and a reviewer, each at a socket; the agent also asks by REST and gRPC."""

    agent: Socket
    reviewer: Socket
    rest: Rest
    rpc: RpcTool
    asked: Seen
    answered: Seen

    async def ask(self, execution_id: str, request_id: str) -> float:
        """Ask; the time, in ms, until the reviewer's socket has the question."""
        began = time.perf_counter()
        reply = await self.agent.send(_request(execution_id, request_id))
        at = await self.asked.until(request_id)
        body_of(await reply, 200, 201)
        return (at - began) * 1e3

    async def answer(self, request_id: str) -> float:
        """Answer; the time, in ms, until the agent's socket has the answer."""
        began = time.perf_counter()
        reply = await self.reviewer.send(_answer(self.asked.holds[request_id]))
        at = await self.answered.until(request_id)
        body_of(await reply)
        return (at - began) * 1e3


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Measure latencies in turns with the floor, then the crowd."""
    site, name = Site(**job["site"]), run_id()
    asked, answered = Seen("hitl_requested"), Seen("hold_resolved")
    async with AsyncExitStack() as opened:
        floor = await opened.enter_async_context(opened_floor(site))
        agent = await opened.enter_async_context(
            opened_socket(site.url, site.agent_token, run_id(), answered.hear)
        )
        reviewer = await opened.enter_async_context(
            opened_socket(site.url, site.reviewer_token, run_id(), asked.hear)
        )
        rest = Rest(site.url, site.agent_token)
        opened.push_async_callback(rest.close)
        channel = await opened.enter_async_context(grpc.aio.insecure_channel(site.grpc_address))
        calls = RpcTool(HumanInputStub(channel), (("authorization", f"Bearer {site.agent_token}"),))
        desk = Desk(agent, reviewer, rest, calls, asked, answered)
        await reviewer.tell({"type": "subscribe", "channels": ["holds"]})
        await _open(desk, name, site.agent)
        times: dict[str, list[float]] = {"hops": [], "ask": [], "answer": [], "tool": [], "rpc": []}
        for turn in range(-1, ROUNDS):
            found = await _turn(desk, floor, name, turn, job["one"] // ROUNDS)
            if turn >= 0:
                for part, measured in found.items():
                    times[part] += measured
        crowd = await _crowd(desk, site.agent, job["open"], job["rate"])
    return {f"{part}_p50": percentile(found, 50) for part, found in times.items()} | crowd


async def _turn(desk: Desk, floor: Any, name: str, turn: int, count: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {
        "hops": await floor.hops(count),
        "ask": [],
        "answer": [],
        "tool": [],
        "rpc": [],
    }
    for number in range(count):
        request_id = f"{name}-{turn}-{number}"
        found["ask"].append(await desk.ask(name, request_id))
        found["answer"].append(await desk.answer(request_id))
    for _ in range(count):
        found["tool"].append(await timed(desk.rest.post("/v1/tools:run", PROMPT)))
        found["rpc"].append(await timed(desk.rpc.run()))
    return found


async def _open(desk: Desk, execution_id: str, agent: str) -> None:
    await desk.agent.ask(start(execution_id, agent), 201)
    await desk.agent.tell({"type": "subscribe", "channels": [f"executions:{execution_id}"]})


async def _crowd(desk: Desk, agent: str, count: int, rate: int) -> dict[str, Any]:
    """Open so many questions, and answer them in random order at a pace."""
    name = run_id()
    executions = [f"{name}-{number}" for number in range(-(-count // OF_ONE_EXECUTION))]
    await in_flight(lambda execution_id: _open(desk, execution_id, agent), executions)
    places = [(executions[number // OF_ONE_EXECUTION], f"{name}.{number}") for number in range(count)]
    await in_flight(lambda place: desk.agent.ask(_request(*place), 200, 201), places)
    ids = [request_id for _, request_id in places]
    async with asyncio.timeout(WITHIN_S):
        for request_id in ids:
            await desk.asked.until(request_id)
    random.Random(count).shuffle(ids)  # noqa: S311 - the order need not be secret
    due, replies = {}, []
    async for request_id, at in paced(ids, rate):
        due[request_id] = at
        replies.append(await desk.reviewer.send(_answer(desk.asked.holds[request_id])))
    for reply in await asyncio.gather(*replies):
        body_of(reply)
    async with asyncio.timeout(WITHIN_S):
        took = [(await desk.answered.until(request_id) - at) * 1e3 for request_id, at in due.items()]
    wrong = [one for one in ids if desk.answered.holds[one]["response"] != one]
    if wrong:
        raise RuntimeError(f"{len(wrong)} questions have another's answer, the first is {wrong[0]}")
    return {"crowd_p50": percentile(took, 50), "crowd_p99": percentile(took, 99), "answered": len(took)}


def _request(execution_id: str, request_id: str) -> Message:
    body = {
        "execution_id": execution_id,
        "request_id": request_id,
        "question": "Which account is it booked to?",
        "timeout_seconds": 3_600,
    }
    return {"type": "request", "body": body}


def _answer(hold: Message) -> Message:
    return {
        "type": "decision",
        "hold_id": hold["hold_id"],
        "decision": "respond",
        "digest": hold["digest"],
        "value": hold["request_id"],
    }


def measure(bench: Bench) -> Result:
    """Questions one at a time against the floor, and 10,000 open at once."""
    count, rate = bench.size(10_000, 200), bench.size(200, 50)
    found = bench.load(
        "ops.bench.questions:load",
        f"questions one at a time, then {count:,} open, {rate} answers/s",
        one=bench.size(600, 30),
        open=count,
        rate=rate,
    )
    hops = found["hops_p50"]
    target = None if bench.is_quick else Target(1_000)
    return Result(
        "questions",
        (
            Figure("request → on a reviewer's socket, p50", found["ask_p50"], "ms", hops, Target(2)),
            Figure("answer → at the agent, p50", found["answer_p50"], "ms", hops, Target(2)),
            Figure("tools:run over REST, p50", found["tool_p50"], "ms", hops, Target(2)),
            Figure("RunTool over gRPC, p50", found["rpc_p50"], "ms", hops, Target(2)),
            Figure(f"{count:,} open, {rate} answers/s: due → at the asker, p50", found["crowd_p50"], "ms"),
            Figure(
                f"{count:,} open, {rate} answers/s: due → at the asker, p99",
                found["crowd_p99"],
                "ms",
                target=target,
            ),
            Figure("answers, each once at its own asker", found["answered"], "answers"),
        ),
    )
