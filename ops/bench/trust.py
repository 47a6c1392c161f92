"""Trust: what a release by trust costs beside one by a rule, and how far trust is behind the log under load."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from string import digits
from typing import Any

from log.kafka.log import KafkaLog
from log.places import TopicPartition
from ops.bench import agent
from ops.bench.agent import ACCEPTED, IN_FLIGHT, READ, allowed, judged, paced, run_id, start_many
from ops.bench.bench import TOOLS, Bench
from ops.bench.load import BenchFailedError
from ops.bench.result import Figure, Result, Target, percentile
from ops.bench.site import Site
from ops.bench.websocket import Socket, opened_socket
from placet import AsyncPlacet
from schemas.topics import Topics
from schemas.trust import TrustCheckpoint, decode

NOTE = "note_file"
HINTS = {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
POLICY = """
policy: bench-trust
scope: {agent: bench}
rules:
  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: allow}
  - {id: notes, match: {tools: [note_file]}, then: hold}
adaptive: {sample_rate: 0}
"""
# The risk of a write that harms nothing requires 13.
APPROVALS_MAX = 200
EVENTS_A_CALL, EVENTS_A_SECOND = 3, 1_000
LOOK_EVERY_S = 0.1
LETTERS = str.maketrans(digits, "abcdefghij")
# Longer than the trust role takes to end itself when it makes no progress, and to start again.
WITHIN_S = 180.0


@dataclass(slots=True)
class Lag:
    """Moments at which the log ended somewhere, until trust has reached it."""

    through: dict[int, int] = field(default_factory=dict)
    waiting: list[tuple[float, Mapping[int, int]]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    caught_up: asyncio.Event = field(default_factory=asyncio.Event)

    def counted(self, checkpoint: TrustCheckpoint) -> None:
        """Trust has counted a partition through an offset."""
        self.through[checkpoint.partition] = checkpoint.through_offset
        now = time.perf_counter()
        reached = [one for one in self.waiting if self._reaches(one[1])]
        self.seconds += [now - at for at, _ in reached]
        self.waiting = [one for one in self.waiting if not self._reaches(one[1])]
        if not self.waiting:
            self.caught_up.set()

    def ended(self, at: float, ends: Mapping[int, int]) -> None:
        """The log ended there at a moment."""
        if not self._reaches(ends):
            self.waiting.append((at, ends))
            self.caught_up.clear()

    def missing(self) -> dict[int, tuple[int, int]]:
        """The partitions that are not counted to where the log ended last."""
        ends = self.waiting[-1][1] if self.waiting else {}
        counted = {number: (self.through.get(number, -1), end) for number, end in ends.items()}
        return {number: (at, end) for number, (at, end) in counted.items() if at < end - 1}

    def _reaches(self, ends: Mapping[int, int]) -> bool:
        return all(self.through.get(number, -1) >= end - 1 for number, end in ends.items())


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Earn trust, measure both kinds of release in turns, then the lag at a steady rate."""
    site = Site(**job["site"])
    async with (
        AsyncPlacet(site.url, token=site.operator_token) as operator,
        AsyncPlacet(site.url, token=site.reviewer_token) as reviewer,
        opened_socket(site.url, site.agent_token, run_id()) as socket,
    ):
        await operator.tools.put(NOTE, {**TOOLS[1], "name": NOTE, "annotations": HINTS})
        await operator.policies.publish("bench-trust", POLICY)
        await _earn(site, socket, reviewer)
        return {**await _latencies(site, socket, job["one"]), **await _lags(site, socket, job["seconds"])}


async def _earn(site: Site, socket: Socket, reviewer: AsyncPlacet) -> None:
    """Propose and approve calls until trust releases one."""
    name = f"{run_id()}-earning"
    await start_many(socket, [name], site.agent)
    for number in range(APPROVALS_MAX):
        call = await judged(partial(socket.ask, agent.propose(name, _call_id(number), NOTE), 200, ACCEPTED))
        if call["status"] == "released":
            return
        await reviewer.holds.decide(call["hold_id"], "approve", digest=call["digest"])
    raise BenchFailedError(f"Trust released no call after {APPROVALS_MAX} approvals.")


def _call_id(number: int) -> str:
    """An id without digits: it is an argument, and a great number is in another class than a small one."""
    return "c" + str(number).translate(LETTERS)


async def _latencies(site: Site, socket: Socket, count: int) -> dict[str, float]:
    names = [f"{run_id()}-{number}" for number in range(IN_FLIGHT)]
    await start_many(socket, names, site.agent)
    times: dict[str, list[float]] = {READ: [], NOTE: []}
    for number in range(count):
        for tool, found in times.items():
            began = time.perf_counter()
            await allowed(
                socket, agent.propose(names[number % IN_FLIGHT], f"{tool}-{_call_id(number)}", tool)
            )
            found.append((time.perf_counter() - began) * 1000)
    return {
        f"{tool}_p{percent}": percentile(found, percent)
        for tool, found in times.items()
        for percent in (50, 99)
    }


async def _lags(site: Site, socket: Socket, seconds: float) -> dict[str, Any]:
    names = [f"{run_id()}-{number}" for number in range(IN_FLIGHT)]
    await start_many(socket, names, site.agent)
    rate = EVENTS_A_SECOND / EVENTS_A_CALL
    async with _watched(site) as lag:
        began = time.perf_counter()
        async with asyncio.TaskGroup() as calls:
            async for number, _ in paced(range(int(rate * seconds)), rate):
                # Only that they are events: on a busy machine some verdicts come after the answer.
                proposal = agent.propose(names[number % IN_FLIGHT], f"c{number}")
                calls.create_task(socket.ask(proposal, 200, ACCEPTED))
        took_s = time.perf_counter() - began
    return {
        "events": int(rate * seconds) * EVENTS_A_CALL / took_s,
        "lag": {str(percent): percentile(lag.seconds, percent) for percent in (50, 99)},
    }


@asynccontextmanager
async def _watched(site: Site) -> AsyncIterator[Lag]:
    log, lag = KafkaLog(site.bootstrap_servers, Topics(site.topic_prefix), site.security), Lag()
    partitions = range(await log.partition_count(log.topics.executions))
    ends = {n: (await log.bounds(TopicPartition(log.topics.trust, n))).end for n in partitions}
    following = asyncio.create_task(_follow(log, ends, lag))
    looking = asyncio.create_task(_look(log, partitions, lag))
    try:
        yield lag
        await _ended(looking)
        await _caught_up(lag)
    finally:
        for task in (looking, following):
            await _ended(task)
        await log.close()


async def _caught_up(lag: Lag) -> None:
    try:
        async with asyncio.timeout(WITHIN_S):
            await lag.caught_up.wait()
    except TimeoutError:
        missing = lag.missing()
        raise BenchFailedError(
            f"After {WITHIN_S:g} s, trust has not counted the log to its end: {missing} are partition → "
            "(counted through, end)."
        ) from None


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _follow(log: KafkaLog, starts: Mapping[int, int], lag: Lag) -> None:
    async with aclosing(log.tail(log.topics.trust, starts)) as chunks:
        async for _, raws in chunks:
            for raw in raws:
                if raw.value and isinstance(record := decode(raw.value), TrustCheckpoint):
                    lag.counted(record)


async def _look(log: KafkaLog, partitions: range, lag: Lag) -> None:
    while True:
        at = time.perf_counter()
        ends = {n: (await log.bounds(TopicPartition(log.topics.executions, n))).end for n in partitions}
        lag.ended(at, ends)
        await asyncio.sleep(LOOK_EVERY_S)


def measure(bench: Bench) -> Result:
    """The cost of a release by trust, and the lag of trust."""
    found = bench.load(
        "ops.bench.trust:load",
        "releases by trust beside those by a rule, and the lag of trust",
        one=bench.size(1_500, 30),
        seconds=bench.size(30, 2),
    )
    by_rule, by_trust = f"{READ}_p", f"{NOTE}_p"
    return Result(
        "trust",
        (
            *(
                Figure(
                    f"propose → release by trust, WebSocket, p{percent}",
                    found[f"{by_trust}{percent}"],
                    "ms",
                    found[f"{by_rule}{percent}"],
                    Target(1.1) if percent == 50 else None,
                )
                for percent in (50, 99)
            ),
            Figure("events while the lag was measured", found["events"], "events/s"),
            Figure("trust behind the log, p50", found["lag"]["50"], "s"),
            Figure("trust behind the log, p99", found["lag"]["99"], "s", target=Target(1)),
        ),
    )
