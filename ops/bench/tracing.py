"""What traces cost: proposals to two stacks side by side, one of which sends every call's spans to a collector."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict
from itertools import chain, count, islice
from statistics import median, quantiles
from typing import Any

from ops.bench.agent import run_id, timed
from ops.bench.bench import Bench, opened_bench
from ops.bench.calls import Call, Calls
from ops.bench.collector import collecting
from ops.bench.rest import Rest
from ops.bench.result import Figure, Result, Target
from ops.bench.site import Site
from ops.bench.websocket import opened_socket

# Short, since what else runs on a machine changes within seconds.
BLOCKS = 100
WARM_UP = 10
WAYS = ("socket", "rest")


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Propose to both stacks in turns; of each way the p50 of each, and the ratios of the blocks' p50."""
    async with AsyncExitStack() as opened:
        sides = {
            name: await _opened_ways(opened, Site(**site))
            for name, site in (("off", job["site"]), ("on", job["traced"]))
        }
        found: dict[str, dict[str, list[list[float]]]] = {way: {name: [] for name in sides} for way in WAYS}
        numbers = count()
        for block in range(-WARM_UP, BLOCKS):
            for way in WAYS:
                # Which of them is first changes with the block.
                for name in sorted(sides, reverse=bool(block % 2)):
                    took = await _block(sides[name][way], islice(numbers, job["one"] // BLOCKS))
                    if block >= 0:
                        found[way][name].append(took)
    return {way: _compared(blocks["off"], blocks["on"]) for way, blocks in found.items()}


async def _opened_ways(opened: AsyncExitStack, site: Site) -> dict[str, Call]:
    socket = await opened.enter_async_context(opened_socket(site.url, site.agent_token, run_id()))
    connection = Rest(site.url, site.agent_token)
    opened.push_async_callback(connection.close)
    calls = Calls(site, socket, [connection], run_id())
    return {"socket": await calls.by_socket(), "rest": await calls.by_rest()}


async def _block(one: Call, numbers: Iterable[int]) -> list[float]:
    """How long each of some proposals took, one at a time, in ms."""
    return [await timed(one(number)) for number in numbers]


def _compared(off: list[list[float]], on: list[list[float]]) -> dict[str, Any]:
    return {
        "off": median(chain.from_iterable(off)),
        "on": median(chain.from_iterable(on)),
        "ratios": sorted(median(ours) / median(theirs) for theirs, ours in zip(off, on, strict=True)),
    }


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
            one=bench.size(6_000, 200),
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
        f"{ways[way]} {quantiles(found[way]['ratios'])[0]:.3f} to {quantiles(found[way]['ratios'])[2]:.3f}"
        for way in WAYS
    )
    return Result("tracing", tuple(figures), f"Middle half of the ratios of {BLOCKS} blocks: {spread}.")


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
