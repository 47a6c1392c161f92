"""History: what a gated call and a resume cost where much has happened before in the same execution."""

from __future__ import annotations

import uuid
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from ops.bench import agent
from ops.bench.agent import ACCEPTED, allowed, in_flight, released, run_id, start_many, timed
from ops.bench.bench import Bench
from ops.bench.holds import Parts, opened_parts
from ops.bench.result import Figure, Result, Target, percentile
from ops.bench.site import Site
from ops.bench.websocket import body_of

SHORT, LONG = 10, 1_000
# Proposed, verdict, released, consumed, succeeded: a call that ran leaves as many events.
EVENTS_A_CALL = 5
CALLS_EACH = 4


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Measure executions with short and long histories in turns, one request in flight."""
    site = Site(**job["site"])
    async with AsyncExitStack() as opened:
        parts = await opened_parts(opened, site)
        name = run_id()
        ids = {events: [f"{name}-{events}-{one}" for one in range(job["each"])] for events in (SHORT, LONG)}
        for events, found in ids.items():
            await start_many(parts.agent, found, site.agent)
            await in_flight(partial(_live, parts, events), found)
        calls: dict[int, list[float]] = {SHORT: [], LONG: []}
        resumes: dict[int, list[float]] = {SHORT: [], LONG: []}
        for number in range(job["each"]):
            for events in (SHORT, LONG):
                calls[events] += [
                    await timed(_call(parts, ids[events][number], n)) for n in range(CALLS_EACH)
                ]
                resumes[events].append(await _resumed(parts, ids[events][number]))
    found_ms = {"calls": calls, "resumes": resumes}
    return {what: {str(n): percentile(of[n], 50) for n in of} for what, of in found_ms.items()}


async def _live(parts: Parts, events: int, execution_id: str) -> None:
    """Run calls until about so many events happened."""
    for number in range(max(1, (events - 1) // EVENTS_A_CALL)):
        attempt_id = uuid.uuid4().hex
        call = await allowed(parts.agent, agent.propose(execution_id, f"earlier-{number}"))
        await parts.agent.ask(agent.consume(call, attempt_id))
        await parts.agent.ask(agent.result(call, attempt_id))


async def _call(parts: Parts, execution_id: str, number: int) -> None:
    await allowed(parts.agent, agent.propose(execution_id, f"timed-{number}"))


async def _resumed(parts: Parts, execution_id: str) -> float:
    """Hold a call; how long from the decision to the release, in ms."""
    proposed = await parts.agent.send(agent.propose(execution_id, "held", agent.WRITE))
    hold = await parts.seen.take(execution_id)
    body_of(await proposed, ACCEPTED)

    async def resume() -> None:
        approved = await parts.reviewer.send(agent.approve(hold))
        released(await parts.decided.take(execution_id))
        body_of(await approved)

    return await timed(resume())


def measure(bench: Bench) -> Result:
    """Cost after 1,000 earlier events over that after 10."""
    found = bench.load("ops.bench.history:load", "short and long histories", each=bench.size(60, 6))
    names = {"calls": "gated call", "resumes": "resume after a decision"}
    return Result(
        "history",
        tuple(
            Figure(
                f"{name}, {LONG:,} earlier events against {SHORT}, p50",
                found[what][str(LONG)],
                "ms",
                found[what][str(SHORT)],
                Target(1.2),
            )
            for what, name in names.items()
        ),
    )
