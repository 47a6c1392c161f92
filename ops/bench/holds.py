"""Full hold cycles: start → held and seen by an outside reader → approved by an outside client → consumed → done.

Three connections with three tokens: the agent works, a watcher sees holds open, a reviewer decides. An agent sends
what needs no answer in between at once: start with the proposal, the result with the end of the execution.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ops.bench import agent
from ops.bench.agent import ACCEPTED, IN_FLIGHT, in_flight, released, run_id
from ops.bench.bench import Bench
from ops.bench.caught_up import until_projected
from ops.bench.floor import ROUNDS, Floor, opened_floor
from ops.bench.result import Figure, Result, Target, percentile
from ops.bench.site import Site
from ops.bench.usage import cpu_ms
from ops.bench.websocket import Message, Socket, body_of, opened_socket

WITHIN_S = 60.0
CALL = "c"


@dataclass(slots=True)
class Waits:
    """What was pushed, or is waited for, by execution."""

    futures: dict[str, asyncio.Future[Message]] = field(default_factory=dict)

    def of(self, execution_id: str) -> asyncio.Future[Message]:
        """The message about an execution, now or later."""
        if execution_id not in self.futures:
            self.futures[execution_id] = asyncio.get_running_loop().create_future()
        return self.futures[execution_id]

    def hear(self, kind: str, message: Message) -> None:
        """Keep a message of a kind."""
        if message["type"] == kind:
            waited = self.of(message["execution_id"])
            if not waited.done():
                waited.set_result(message)

    async def take(self, execution_id: str) -> Message:
        """Wait for the message about an execution.

        Raises:
            TimeoutError: it did not come.
        """
        async with asyncio.timeout(WITHIN_S):
            message = await self.of(execution_id)
        del self.futures[execution_id]
        return message


@dataclass(frozen=True, slots=True)
class Parts:
    """Who takes part in a cycle."""

    site: Site
    agent: Socket
    reviewer: Socket
    seen: Waits
    decided: Waits

    async def cycle(self, execution_id: str) -> None:
        """One whole cycle."""
        attempt_id = uuid.uuid4().hex
        started = await self.agent.send(agent.start(execution_id, self.site.agent))
        call = await self._begun(execution_id, attempt_id)
        body_of(await started, 201)
        told = await self.agent.send(agent.result(call, attempt_id))
        ended = await self.agent.send(agent.finish(execution_id))
        body_of(await told)
        body_of(await ended)

    async def reviewed(self, execution_id: str) -> None:
        """The call alone, in an execution that is open: proposed, held, approved, consumed and reported."""
        attempt_id = uuid.uuid4().hex
        call = await self._begun(execution_id, attempt_id)
        await self.agent.ask(agent.result(call, attempt_id))

    async def _begun(self, execution_id: str, attempt_id: str) -> Message:
        proposed = await self.agent.send(agent.propose(execution_id, CALL, agent.WRITE))
        hold = await self.seen.take(execution_id)
        body_of(await proposed, ACCEPTED)
        approved = await self.reviewer.send(agent.approve(hold))
        call = released(await self.decided.take(execution_id))
        body_of(await approved)
        await self.agent.ask(agent.consume(call, attempt_id))
        return call

    async def paused_and_resumed(self, execution_id: str) -> tuple[float, float]:
        """How long until a proposal's hold is seen, and from the decision to the release, in ms."""
        await self.agent.ask(agent.start(execution_id, self.site.agent), 201)
        began = time.perf_counter()
        proposed = await self.agent.send(agent.propose(execution_id, CALL, agent.WRITE))
        hold = await self.seen.take(execution_id)
        paused_ms = (time.perf_counter() - began) * 1e3
        body_of(await proposed, ACCEPTED)
        began = time.perf_counter()
        approved = await self.reviewer.send(agent.approve(hold))
        released(await self.decided.take(execution_id))
        resumed_ms = (time.perf_counter() - began) * 1e3
        body_of(await approved)
        return paused_ms, resumed_ms


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Measure producing and cycles in turns, then one cycle at a time."""
    site = Site(**job["site"])
    async with AsyncExitStack() as opened:
        floor = await opened.enter_async_context(opened_floor(site))
        parts = await opened_parts(opened, site)
        name = run_id()
        await _cycles(parts, f"{name}-w", job["warm"])
        return {**await _rates(floor, parts, name, job), **await _latencies(parts, name, job["one"])}


async def opened_parts(opened: AsyncExitStack, site: Site) -> Parts:
    """Connect everybody; the watcher is subscribed."""
    seen, decided = Waits(), Waits()
    subscribed = asyncio.Event()

    def watch(message: Message) -> None:
        if message["type"] == "snapshot":
            subscribed.set()
        seen.hear("tool_call_pending_review", message)

    async def connected(token: str, on_push: Any) -> Socket:
        return await opened.enter_async_context(opened_socket(site.url, token, run_id(), on_push))

    watcher = await connected(site.watcher_token, watch)
    await watcher.tell({"type": "subscribe", "channels": ["holds"]})
    async with asyncio.timeout(WITHIN_S):
        await subscribed.wait()
    worker = await connected(site.agent_token, lambda message: decided.hear("tool_call_decided", message))
    reviewer = await connected(site.reviewer_token, lambda message: None)
    return Parts(site, worker, reviewer, seen, decided)


async def _cycles(parts: Parts, name: str, count: int) -> float:
    return await in_flight(parts.cycle, [f"{name}-{number}" for number in range(count)])


async def _rates(floor: Floor, parts: Parts, name: str, job: dict[str, Any]) -> dict[str, Any]:
    produced, cycles = [], []
    cpu: dict[str, float] = {}
    await floor.produce_rate(job["records"] // 4)
    for turn in range(ROUNDS):
        produced.append(await floor.produce_rate(job["records"]))
        await until_projected(parts.site)
        before = cpu_ms(parts.site.pids())
        cycles.append(job["cycles"] / await _cycles(parts, f"{name}-{turn}", job["cycles"]))
        await until_projected(parts.site)
        for part, after in cpu_ms(parts.site.pids()).items():
            cpu[part] = cpu.get(part, 0.0) + (after - before[part]) / job["cycles"] / ROUNDS
    return {"produce_rate": median(produced), "cycle_rate": median(cycles), "cpu": cpu}


async def _latencies(parts: Parts, name: str, count: int) -> dict[str, Any]:
    times = [await parts.paused_and_resumed(f"{name}-one-{number}") for number in range(count)]
    paused, resumed = zip(*times[count // 5 :], strict=True)
    return {
        f"{what}_p{percent}": percentile(found, percent)
        for what, found in (("paused", paused), ("resumed", resumed))
        for percent in (50, 99)
    }


def measure(bench: Bench) -> Result:
    """Cycles a second, what one costs, and how long a person's wait and an agent's are prolonged."""
    found = bench.load(
        "ops.bench.holds:load",
        "full hold cycles",
        warm=bench.size(640, IN_FLIGHT),
        records=bench.size(40_000, 4_000),
        cycles=bench.size(1_500, 150),
        one=bench.size(400, 40),
    )
    rate = Figure(
        "full cycles, 64 at once",
        found["cycle_rate"],
        "cycles/s",
        found["produce_rate"],
        Target(1 / 40, at_most=False),
    )
    cpu = sum(found["cpu"].values())
    return Result(
        "holds",
        (
            rate,
            Figure("CPU of broker, decider, projector and gateway", cpu, "ms/cycle", target=Target(2)),
            *(Figure(f"CPU of {name}", value, "ms/cycle") for name, value in found["cpu"].items()),
            Figure("paused: propose → hold seen outside, p50", found["paused_p50"], "ms", target=Target(6)),
            Figure("paused, p99", found["paused_p99"], "ms"),
            Figure(
                "resumed: decision → release at the agent, p50", found["resumed_p50"], "ms", target=Target(5)
            ),
            Figure("resumed, p99", found["resumed_p99"], "ms"),
        ),
    )
