"""Chats: many conversations at once over SSE, each answered by a worker in several messages.

A worker of the client's own (`AsyncPlacet.serve`) posts replies at a fixed pace over all conversations. Each is timed
from when it was due to the moment that its reader has it. An event that does not come, or comes to another reader,
fails the run.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

import httpx

from ops.bench.agent import run_id
from ops.bench.bench import Bench
from ops.bench.result import Figure, Result, Target, percentile
from ops.bench.site import Site
from placet import AsyncPlacet, AsyncTurn

WITHIN_S = 120.0


class Pace:
    """Hands out the moments at which replies are due, evenly over all conversations."""

    def __init__(self, rate: int, conversations: int) -> None:
        self._rate = rate
        self._left = conversations
        self._all_here = asyncio.Event()
        self._began = 0.0
        self._next = 0
        self.due: dict[str, float] = {}

    async def join(self) -> None:
        """Wait until every conversation is being answered."""
        self._left -= 1
        if self._left == 0:
            self._began = time.perf_counter()
            self._all_here.set()
        await self._all_here.wait()

    async def turn(self, text: str) -> None:
        """Wait for the next free moment, and note it for a text."""
        at = self._began + self._next / self._rate
        self._next += 1
        await asyncio.sleep(max(0.0, at - time.perf_counter()))
        self.due[text] = at


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Open all conversations, answer them at the pace, and see that each reader has its own replies."""
    site, name = Site(**job["site"]), run_id()
    pace = Pace(job["rate"], job["conversations"])
    seen: dict[str, float] = {}

    async def answer(turn: AsyncTurn) -> None:
        await pace.join()
        for number in range(job["replies"]):
            text = f"{turn.message}.{number}"
            await pace.turn(text)
            await turn.say(text)

    async with AsyncExitStack() as opened:
        worker = await opened.enter_async_context(
            AsyncPlacet(site.url, token=site.agent_token, agent=site.agent)
        )
        serving = asyncio.create_task(worker.serve({site.agent: answer}, concurrency=job["conversations"]))
        opened.callback(serving.cancel)
        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as readers:
            for number in range(job["conversations"]):
                readers.create_task(_read(site, f"{name}-{number}", seen))
    took = [(seen[text] - at) * 1e3 for text, at in pace.due.items()]
    return {"p50": percentile(took, 50), "p99": percentile(took, 99), "seen": len(took)}


async def _read(site: Site, name: str, seen: dict[str, float]) -> None:
    """Send a message and read its answer to the end, as a client of its own."""
    headers = {"Authorization": f"Bearer {site.agent_token}"}
    body = {"message": name, "agent": site.agent}
    # The time that a shared pool takes grows with the square of its connections; and this is plain HTTP.
    async with (
        httpx.AsyncClient(timeout=WITHIN_S, verify=False) as client,  # noqa: S501
        client.stream("POST", f"{site.url}/agent/chat", json=body, headers=headers) as response,
    ):
        if response.status_code != 200:
            raise RuntimeError(f"the gateway answered {response.status_code}: {await response.aread()!r}")
        kind, number = "", 0
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: ") and kind == "message":
                text = f"{name}.{number}"
                if f'"text":"{text}"' not in line:
                    raise RuntimeError(f"instead of {text} came {line[:200]}")
                seen[text] = time.perf_counter()
                number += 1
            elif line.startswith("data: ") and kind != "complete":
                raise RuntimeError(f"an unexpected event {kind}: {line[:200]}")


def measure(bench: Bench) -> Result:
    """500 conversations at once, 200 replies a second."""
    conversations, rate = bench.size(500, 20), bench.size(200, 40)
    found = bench.load(
        "ops.bench.chats:load",
        f"{conversations} conversations over SSE, {rate} replies/s",
        conversations=conversations,
        rate=rate,
        replies=bench.size(8, 3),
    )
    target = None if bench.is_quick else Target(250)
    return Result(
        "chats",
        (
            Figure(f"{conversations} conversations, {rate}/s: due → read, p50", found["p50"], "ms"),
            Figure(
                f"{conversations} conversations, {rate}/s: due → read, p99", found["p99"], "ms", target=target
            ),
            Figure("replies, each read once by its own reader", found["seen"], "replies"),
        ),
    )
