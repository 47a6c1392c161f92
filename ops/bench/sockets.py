"""Many readers: 1,000 WebSocket clients, each subscribed to an execution of its own, while calls are decided.

Proposals leave at a fixed pace, whatever the answers do; each is timed from when it was due to the moment that its
subscriber has seen it decided. A message that does not come, or comes to another client, fails the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gateway.identity.issuer import issue
from ops.bench import agent
from ops.bench.agent import in_flight, released, run_id, start_many
from ops.bench.bench import Bench
from ops.bench.result import Figure, Result, Target, percentile
from ops.bench.site import PROJECT, TENANT, Site
from ops.bench.websocket import Message, Socket, body_of, opened_socket

WITHIN_S = 60.0
POLL_S = 0.05


@dataclass(slots=True)
class Reader:
    """What one client was sent: when each call of its execution was seen decided."""

    execution_id: str
    subscribed: asyncio.Event = field(default_factory=asyncio.Event)
    seen: dict[str, float] = field(default_factory=dict)
    strange: list[Message] = field(default_factory=list)

    def hear(self, message: Message) -> None:
        """Note a pushed message."""
        if message["type"] == "snapshot":
            self.subscribed.set()
        elif message["type"] == "tool_call_decided":
            if message["execution_id"] != self.execution_id or message["call_id"] in self.seen:
                self.strange.append(message)
            self.seen[message["call_id"]] = time.perf_counter()


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Connect everybody, propose at the pace, and see that each has seen its own."""
    site, name = Site(**job["site"]), run_id()
    readers = [Reader(f"{name}-{number}") for number in range(job["clients"])]
    async with AsyncExitStack() as opened:
        worker = await opened.enter_async_context(opened_socket(site.url, site.agent_token, run_id()))
        await start_many(worker, [reader.execution_id for reader in readers], site.agent)
        await in_flight(partial(_connect, opened, site), readers)
        await _paced(worker, readers, "warm", job["rate"], job["rate"])
        count = job["rate"] * job["seconds"]
        due = await _paced(worker, readers, "call", count, job["rate"])
        times = await _seen(readers, due)
    if strange := [message for reader in readers for message in reader.strange]:
        raise RuntimeError(f"{len(strange)} messages went astray, the first is {strange[0]}")
    return {"p50": percentile(times, 50), "p99": percentile(times, 99), "seen": len(times)}


async def _connect(opened: AsyncExitStack, site: Site, reader: Reader) -> None:
    keys = Path(site.data_dir) / "keys"
    token = issue(keys, f"reader-{reader.execution_id}", ["reviewer"], TENANT, PROJECT)
    socket = await opened.enter_async_context(opened_socket(site.url, token, run_id(), reader.hear))
    await socket.tell({"type": "subscribe", "channels": [f"executions:{reader.execution_id}"]})
    async with asyncio.timeout(WITHIN_S):
        await reader.subscribed.wait()


async def _paced(
    worker: Socket, readers: Sequence[Reader], name: str, count: int, rate: int
) -> dict[tuple[int, str], float]:
    """Propose at a pace.

    Returns:
        (reader, call) → when the proposal was due.
    """
    due, answers = {}, []
    async for number, at in agent.paced(range(count), rate):
        which, call_id = number % len(readers), f"{name}-{number}"
        due[which, call_id] = at
        answers.append(await worker.send(agent.propose(readers[which].execution_id, call_id)))
    for answer in await asyncio.gather(*answers):
        released(body_of(answer))
    return due


async def _seen(readers: Sequence[Reader], due: dict[tuple[int, str], float]) -> list[float]:
    """How long each took to be seen, in ms."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            left = [(which, call_id) for which, call_id in due if call_id not in readers[which].seen]
            if not left:
                return [(readers[which].seen[call_id] - at) * 1e3 for (which, call_id), at in due.items()]
            await asyncio.sleep(POLL_S)


def measure(bench: Bench) -> Result:
    """Delivery to 1,000 clients at 200 decided calls a second."""
    clients, rate = bench.size(1_000, 50), bench.size(200, 50)
    found = bench.load(
        "ops.bench.sockets:load",
        f"{clients:,} clients, {rate} decided calls/s",
        clients=clients,
        rate=rate,
        seconds=bench.size(10, 2),
    )
    target = None if bench.is_quick else Target(250)
    return Result(
        "sockets",
        (
            Figure(f"{clients:,} clients, {rate}/s: due → seen, p50", found["p50"], "ms"),
            Figure(f"{clients:,} clients, {rate}/s: due → seen, p99", found["p99"], "ms", target=target),
            Figure("messages, each seen once by its own client", found["seen"], "messages"),
        ),
    )
