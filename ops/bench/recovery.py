"""Recovery: the decider is killed with many holds open; how long until it serves again, and in how much memory.

Holds are opened by signed commands produced straight to Kafka (`seed`), ten in each execution. Served again means
that a call proposed at the moment of the kill is decided on every partition; the supervisor's back-off counts too.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

from ops.bench import agent
from ops.bench.agent import run_id, start_many
from ops.bench.bench import Bench
from ops.bench.caught_up import until_projected
from ops.bench.holds import Waits
from ops.bench.result import Figure, Result, Target
from ops.bench.seed import CALLS_EACH, seed, until_held
from ops.bench.site import PROJECT, TENANT, Site
from ops.bench.usage import peak_memory_mb
from ops.bench.websocket import Socket, opened_socket
from schemas.ids import execution_key
from schemas.topics import partition_of

WITHIN_S = 300.0
RECOVERED_IN = Target(20.0)
MEMORY_MB = Target(1_536.0)


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Open holds, kill the decider, measure; then with more holds."""
    site = Site(**job["site"])
    decided = Waits()
    found: dict[str, Any] = {}
    opened = 0

    def hear(message: dict[str, Any]) -> None:
        decided.hear("tool_call_decided", message)

    async with opened_socket(site.url, site.agent_token, run_id(), hear) as socket:
        for holds in job["holds"]:
            await seed(site, run_id(), (holds - opened) // CALLS_EACH, {}, agent.WRITE)
            opened = holds
            await until_held(site, opened)
            await until_projected(site)
            found[str(holds)] = await _recovery(site, socket, decided)
    return found


async def _recovery(site: Site, socket: Socket, decided: Waits) -> dict[str, float]:
    probes = list(_one_a_partition(site))
    await start_many(socket, probes, site.agent)
    killed = site.pids()["decider"]
    began = time.perf_counter()
    os.kill(killed, signal.SIGKILL)
    served = [asyncio.create_task(_served(socket, decided, probe, began)) for probe in probes]
    times = await asyncio.gather(*served)
    fresh = site.pids()["decider"]
    if fresh == killed:
        raise RuntimeError("the decider that was killed still runs")
    return {"first_s": min(times), "all_s": max(times), "peak_mb": peak_memory_mb(fresh)}


async def _served(socket: Socket, decided: Waits, execution_id: str, began: float) -> float:
    """Seconds until a call that is proposed now is decided, by the answer or pushed after it."""
    reply = await (await socket.send(agent.propose(execution_id, "probe")))
    if reply["status"] != 200:
        async with asyncio.timeout(WITHIN_S):
            await decided.of(execution_id)
    return time.perf_counter() - began


def _one_a_partition(site: Site) -> Iterator[str]:
    """Names of executions, one for each partition."""
    name, number, left = run_id(), 0, set(range(site.partitions))
    while left:
        execution_id = f"{name}-{number}"
        partition = partition_of(execution_key(TENANT, PROJECT, execution_id), site.partitions)
        if partition in left:
            left.remove(partition)
            yield execution_id
        number += 1


def measure(bench: Bench) -> Result:
    """Time and memory of a recovery with 10,000 and 100,000 open holds."""
    sizes = [200, 1_000] if bench.is_quick else [10_000, 100_000]
    found = bench.load("ops.bench.recovery:load", f"recovery with {sizes} open holds", holds=sizes)
    figures: list[Figure] = []
    for holds in sizes:
        of, is_asked = found[str(holds)], holds == 100_000
        figures += [
            Figure(f"{holds:,} open holds: first partition serves", of["first_s"], "s"),
            Figure(
                f"{holds:,} open holds: all serve",
                of["all_s"],
                "s",
                target=RECOVERED_IN if is_asked else None,
            ),
            Figure(
                f"{holds:,} open holds: most memory",
                of["peak_mb"],
                "MiB",
                target=MEMORY_MB if is_asked else None,
            ),
        ]
    return Result("recovery", tuple(figures), "holds opened by signed commands produced straight to Kafka")
