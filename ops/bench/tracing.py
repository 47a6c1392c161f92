"""What traces cost: proposals to two stacks side by side, one of which sends every call's spans to a collector."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict
from statistics import median
from typing import Any

from ops.bench.agent import run_id, timed
from ops.bench.bench import Bench, opened_bench
from ops.bench.calls import Calls
from ops.bench.collector import collecting
from ops.bench.rest import Rest
from ops.bench.result import Figure, Result, Target, percentile
from ops.bench.site import Site
from ops.bench.websocket import opened_socket

BLOCKS = 10
WAYS = ("socket", "rest")


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Propose to both stacks in turns; of each way the p50 of each, and the ratios of the blocks."""
    async with AsyncExitStack() as opened:
        sides = {
            name: await _opened_calls(opened, Site(**site))
            for name, site in (("off", job["site"]), ("on", job["traced"]))
        }
        found: dict[str, dict[str, list[float]]] = {way: {name: [] for name in sides} for way in WAYS}
        for block in range(-1, BLOCKS):
            for way in WAYS:
                # Which of them is first changes with the block.
                for name in sorted(sides, reverse=bool(block % 2)):
                    p50 = await _block(sides[name], way, job["one"] // BLOCKS)
                    if block >= 0:
                        found[way][name].append(p50)
    return {
        way: {
            "off": median(sides["off"]),
            "on": median(sides["on"]),
            "ratios": [on / off for off, on in zip(sides["off"], sides["on"], strict=True)],
        }
        for way, sides in found.items()
    }


async def _opened_calls(opened: AsyncExitStack, site: Site) -> Calls:
    socket = await opened.enter_async_context(opened_socket(site.url, site.agent_token, run_id()))
    connection = Rest(site.url, site.agent_token)
    opened.push_async_callback(connection.close)
    return Calls(site, socket, [connection], run_id())


async def _block(calls: Calls, way: str, count: int) -> float:
    """The p50 of so many proposals, one at a time, in ms."""
    one = await (calls.by_socket() if way == "socket" else calls.by_rest())
    return percentile([await timed(one(number)) for number in range(count)], 50)


def measure(bench: Bench) -> Result:
    """The gate's p50 with traces on, over its p50 with traces off."""
    with (
        collecting() as url,
        _environment({"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_METRICS_EXPORTER": "none"}),
        opened_bench(bench.tell, is_quick=bench.is_quick) as traced,
    ):
        found = bench.load(
            "ops.bench.tracing:load",
            "propose → verdict, with and without traces in turns",
            traced=asdict(traced.site),
            one=bench.size(3_000, 200),
        )
    ways = {"socket": "WebSocket", "rest": "REST"}
    figures = (
        Figure(
            f"propose → verdict, {ways[way]}, p50, each call traced; floor: traces off",
            found[way]["on"],
            "ms",
            found[way]["off"],
            None if bench.is_quick else Target(1.10),
        )
        for way in WAYS
    )
    spread = "; ".join(
        f"{ways[way]} {min(found[way]['ratios']):.3f} to {max(found[way]['ratios']):.3f}" for way in WAYS
    )
    return Result("tracing", tuple(figures), f"Ratios of the {BLOCKS} blocks: {spread}.")


@contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    """Within it, processes are started with these variables, too."""
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
