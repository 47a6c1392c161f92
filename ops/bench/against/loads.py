"""The loads of a comparison, the same for both sides: each answers with its figures by key (`scenarios`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from ops.bench.against.meter import LOAD, STACK, Processes, Used, metered
from ops.bench.agent import ACCEPTED, WRITE, in_flight, propose, run_id, start, start_many, timed
from ops.bench.calls import Calls, takes_attempts
from ops.bench.floor import Floor, opened_floor
from ops.bench.holds import opened_parts
from ops.bench.rest import Rest
from ops.bench.result import percentile
from ops.bench.site import Site
from ops.bench.websocket import opened_socket
from ops.component import KAFKA
from schemas.topics import Topics

CALLS_EACH = 10
# One after the other before the next thing's turn: as many as make a steady pace.
TURN = 20
# More than elsewhere: a log is made, and nothing is measured.
FILLING = 256

Job = Mapping[str, Any]


async def gate(job: Job) -> dict[str, float]:
    """Calls proposed, allowed, consumed and reported, 64 in flight."""
    site = Site(**job["site"])
    async with opened_socket(site.url, site.agent_token, run_id()) as socket:
        calls = Calls(site, socket, (), run_id(), takes_attempts=await takes_attempts(site.url))
        await in_flight(await calls.to_the_end(), range(job["warm"]))
        one = await calls.to_the_end()
        count = job["calls"]
        return _rate("gate", await metered(_processes(job), in_flight(one, range(count))), count)


async def holds(job: Job) -> dict[str, float]:
    """Calls proposed, held, approved by another, consumed and reported, 64 at once in an execution each."""
    site = Site(**job["site"])
    async with AsyncExitStack() as opened:
        parts = await opened_parts(opened, site)
        name, count = run_id(), job["cycles"]
        ids = [f"{name}-{number}" for number in range(job["warm"] + count)]
        await start_many(parts.agent, ids, site.agent)
        await in_flight(parts.reviewed, ids[count:])
        return _rate("holds", await metered(_processes(job), in_flight(parts.reviewed, ids[:count])), count)


async def latency(job: Job) -> dict[str, float]:
    """One at a time, in turns: two hops of the broker, a verdict by each transport, a call until it may run.

    Then verdicts alone, one after the other: what processor time one takes that shares no work with others.
    """
    site = Site(**job["site"])
    async with AsyncExitStack() as opened:
        floor = await opened.enter_async_context(opened_floor(site))
        socket = await opened.enter_async_context(opened_socket(site.url, site.agent_token, run_id()))
        rest = Rest(site.url, site.agent_token)
        opened.push_async_callback(rest.close)
        calls = Calls(site, socket, [rest], run_id(), takes_attempts=await takes_attempts(site.url))
        ways = {
            "verdict": await calls.by_socket(),
            "rest-verdict": await calls.by_rest(),
            "may-run": await calls.until_it_may_run(),
        }
        await _in_turns(floor, ways, range(1))
        await _processes(job).until_rested()
        times = await _in_turns(floor, ways, range(1, 1 + job["turns"]))
        alone, count = await calls.by_socket(), job["alone"]
        used = await metered(_processes(job), in_flight(alone, range(count), at_once=1))
    found = {f"{name}-ms": percentile(of, 50) for name, of in times.items()}
    for name in ("verdict", "rest-verdict"):
        found[f"{name}-hops"] = found[f"{name}-ms"] / found["hops-ms"]
    return found | _cpu("latency", used, count)


async def idle(job: Job) -> dict[str, float]:
    """What a stack uses that nobody asks for anything."""
    processes = _processes(job)
    await processes.until_rested()
    before, began = processes.cpu_ms(), time.perf_counter()
    await asyncio.sleep(job["seconds"])
    after, took_ms = processes.cpu_ms(), (time.perf_counter() - began) * 1e3
    shares = {name: (after[name] - before[name]) / took_ms * 100 for name in before}
    return _named("idle", {"cpu": shares.pop(STACK), "broker-cpu": shares.pop(KAFKA)}, shares)


async def fill(job: Job) -> dict[str, float]:
    """Propose calls until the log has so many events: of ten calls nine are released and one is held."""
    site = Site(**job["site"])
    async with opened_socket(site.url, site.agent_token, run_id()) as socket:
        name, number = run_id(), 0

        async def live(one: int) -> None:
            execution_id = f"{name}-{one}"
            await socket.ask(start(execution_id, site.agent), 201)
            for call in range(1, CALLS_EACH):
                await socket.ask(propose(execution_id, f"c{call}"))
            await socket.ask(propose(execution_id, "held", WRITE), ACCEPTED)

        while await _events(site) < job["events"]:
            await in_flight(live, range(number, number + FILLING), FILLING)
            number += FILLING
    await _processes(job).until_rested()
    return {}


async def _events(site: Site) -> int:
    """How many places of the log are taken."""
    consumer = AIOKafkaConsumer(bootstrap_servers=site.bootstrap_servers, **site.security)
    await consumer.start()
    try:
        topic = Topics(site.topic_prefix).executions
        ends = await consumer.end_offsets([TopicPartition(topic, one) for one in range(site.partitions)])
        return sum(ends.values())
    finally:
        await consumer.stop()


async def _in_turns(
    floor: Floor, ways: Mapping[str, Callable[[int], Awaitable[None]]], turns: range
) -> dict[str, list[float]]:
    """Times of everything in ms, some of each in turns, so that a neighbour's load falls on all alike."""
    times: dict[str, list[float]] = {"hops": [], **{name: [] for name in ways}}
    for turn in turns:
        times["hops"] += await floor.hops(TURN)
        for name, way in ways.items():
            times[name] += [await timed(way(turn * TURN + number)) for number in range(TURN)]
    return times


def _processes(job: Job) -> Processes:
    return Processes(**job["processes"])


def _rate(name: str, used: Used, count: int) -> dict[str, float]:
    return {f"{name}-rate": count / used.took} | _cpu(name, used, count)


def _cpu(name: str, used: Used, count: int) -> dict[str, float]:
    each = {part: value / count for part, value in used.cpu.items()}
    told = {"cpu": each.pop(STACK), "broker-cpu": each.pop(KAFKA), "load-cpu": each.pop(LOAD)}
    return _named(name, told, each)


def _named(name: str, told: Mapping[str, float], parts: Mapping[str, float]) -> dict[str, float]:
    """Figures by key: those that every stack has, and one for each part that this one has."""
    return {
        f"{name}-{key}": value
        for key, value in (*told.items(), *((f"cpu-{one}", parts[one]) for one in parts))
    }
