"""The gate: a call is proposed, and the verdict is at the client. Floor and gate are measured in turns."""

from __future__ import annotations

from contextlib import AsyncExitStack
from statistics import median
from typing import Any

from ops.bench.agent import IN_FLIGHT, in_flight, run_id, timed
from ops.bench.bench import Bench
from ops.bench.calls import Calls
from ops.bench.floor import ROUNDS, Floor, opened_floor
from ops.bench.rest import Rest
from ops.bench.result import Figure, Result, Target, percentile
from ops.bench.site import Site
from ops.bench.usage import cpu_ms
from ops.bench.websocket import opened_socket


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Measure everything in turns, so that a neighbour's load falls on floor and gate alike."""
    site = Site(**job["site"])
    async with AsyncExitStack() as opened:
        floor = await opened.enter_async_context(opened_floor(site))
        socket = await opened.enter_async_context(opened_socket(site.url, site.agent_token, run_id()))
        connections = [Rest(site.url, site.agent_token) for _ in range(IN_FLIGHT)]
        for connection in connections:
            opened.push_async_callback(connection.close)
        calls = Calls(site, socket, connections, run_id())
        await _warm_up(floor, calls, job["one"])
        return {**await _latencies(floor, calls, job["one"]), **await _rates(floor, calls, job)}


async def _warm_up(floor: Floor, calls: Calls, count: int) -> None:
    await floor.hops(count // 4)
    for way in (await calls.by_socket(), await calls.by_rest()):
        await in_flight(way, range(count))


async def _latencies(floor: Floor, calls: Calls, count: int) -> dict[str, Any]:
    times: dict[str, list[float]] = {"hops": [], "socket": [], "rest": []}
    by_socket, by_rest = await calls.by_socket(), await calls.by_rest()
    for turn in range(ROUNDS):
        numbers = range(turn * count, turn * count + count // ROUNDS)
        times["hops"] += await floor.hops(len(numbers))
        times["socket"] += [await timed(by_socket(number)) for number in numbers]
        times["rest"] += [await timed(by_rest(number)) for number in numbers]
    return {
        f"{name}_p{percent}": percentile(found, percent)
        for name, found in times.items()
        for percent in (50, 99)
    }


async def _rates(floor: Floor, calls: Calls, job: dict[str, Any]) -> dict[str, Any]:
    rates: dict[str, list[float]] = {"produce": [], "socket": [], "rest": []}
    cpu: dict[str, float] = {}
    await floor.produce_rate(job["records"] // 4)
    for _ in range(ROUNDS):
        rates["produce"].append(await floor.produce_rate(job["records"]))
        for name, way, count in (
            ("socket", await calls.by_socket(), job["by_socket"]),
            ("rest", await calls.by_rest(), job["by_rest"]),
        ):
            before = cpu_ms(calls.site.pids())
            took_s = await in_flight(way, range(count))
            rates[name].append(count / took_s)
            if name == "socket":
                for part, after in cpu_ms(calls.site.pids()).items():
                    cpu[part] = cpu.get(part, 0.0) + (after - before[part]) / count / ROUNDS
    return {**{f"{name}_rate": median(found) for name, found in rates.items()}, "cpu": cpu}


def measure(bench: Bench) -> Result:
    """The gate's latency and throughput over both transports."""
    found = bench.load(
        "ops.bench.gate:load",
        "propose → verdict, in turns with the floor",
        one=bench.size(1_200, 40),
        records=bench.size(40_000, 400),
        by_socket=bench.size(8_000, 100),
        by_rest=bench.size(2_000, 50),
    )
    return Result("gate", (*_latency_figures(found), *_rate_figures(found)))


def _latency_figures(found: dict[str, Any]) -> tuple[Figure, ...]:
    hops_p50, hops_p99 = found["hops_p50"], found["hops_p99"]
    return (
        Figure("propose → verdict, WebSocket, p50", found["socket_p50"], "ms", hops_p50, Target(2)),
        Figure("propose → verdict, WebSocket, p99", found["socket_p99"], "ms", hops_p99, Target(3)),
        Figure("propose → verdict, REST, p50", found["rest_p50"], "ms", hops_p50, Target(3)),
        Figure("propose → verdict, REST, p99", found["rest_p99"], "ms", hops_p99),
    )


def _rate_figures(found: dict[str, Any]) -> tuple[Figure, ...]:
    produce = found["produce_rate"]
    at_least = {"socket": Target(1 / 8, at_most=False), "rest": Target(1 / 50, at_most=False)}
    return (
        Figure("64 in flight, WebSocket", found["socket_rate"], "calls/s", produce, at_least["socket"]),
        Figure("64 in flight, REST", found["rest_rate"], "calls/s", produce, at_least["rest"]),
        *(
            Figure(f"64 in flight, WebSocket, CPU of {name}", value, "ms/call")
            for name, value in found["cpu"].items()
        ),
    )
