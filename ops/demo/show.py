"""The demo: the operator publishes, the agents work, a reviewer decides, agentdojo judges the outcome."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from ops.demo.access import Access
from ops.demo.agent import OnPassage, work
from ops.demo.passage import Passage
from ops.demo.report import Outcome
from ops.demo.reviewer import GroundTruth
from ops.demo.suites import Job, Office
from ops.demo.tools import definitions
from ops.errors import OpsError
from placet import AsyncPlacet, Published

POLICY = Path(__file__).resolve().parents[2] / "policies" / "demo.yaml"
# Enough to get verdicts while other jobs wait for the reviewer; few enough not to measure a queue.
JOBS_AT_ONCE = 4

Decide = Callable[[AsyncPlacet, GroundTruth], Coroutine[Any, Any, None]]


def show(
    access: Access,
    offices: Sequence[Office],
    jobs: Sequence[Job],
    on_passage: OnPassage,
    *,
    decide: Decide,
    at_once: int,
) -> list[Outcome]:
    """Publish tools and policy, then do all jobs while the reviewer decides the holds.

    Args:
        access: the gateway and the tokens.
        offices: the suites.
        jobs: the jobs, in this order.
        on_passage: called with the outcome of each call.
        decide: the reviewer; it decides until cancelled.
        at_once: number of jobs that run at the same time.

    Raises:
        OpsError: the decider has not adopted the definitions.
        PlacetError: Placet refused a request, or did not answer.
    """

    async def all_of_it() -> list[Outcome]:
        await publish(access, offices)
        return await perform(access, jobs, on_passage, decide, at_once)

    try:
        return asyncio.run(all_of_it())
    except BaseExceptionGroup as group:
        raise _first(group) from group


def _first(error: BaseException) -> BaseException:
    """The first error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def publish(access: Access, offices: Sequence[Office]) -> None:
    """Publish the suites' tools and the demo's policy, as the operator.

    Raises:
        OpsError: the decider has not adopted them.
    """
    async with AsyncPlacet(access.url, token=access.operator) as operator:
        for office in offices:
            for name, definition in definitions(office.suite.tools).items():
                _check_adopted(await operator.tools.put(name, definition))
        _check_adopted(await operator.policies.publish("demo", POLICY.read_text(encoding="utf-8")))


def _check_adopted(published: Published) -> None:
    if missing := published.raw.get("pending"):
        raise OpsError(
            f"{published.name} was published, but partitions {missing} have not adopted it: "
            "check the decider with placet status, and start the demo again."
        )


async def perform(
    access: Access, jobs: Sequence[Job], on_passage: OnPassage, decide: Decide, at_once: int
) -> list[Outcome]:
    """Do all jobs; arguments as `show`."""
    start = uuid.uuid4().hex[:8]
    named = {f"demo-{start}.{job.name}": job for job in jobs}
    truth = GroundTruth({execution_id: job.truth for execution_id, job in named.items()})
    async with AsyncExitStack() as clients:
        agents = {
            name: await clients.enter_async_context(AsyncPlacet(access.url, token=token, agent=name))
            for name, token in access.agents.items()
        }
        reviewer = await clients.enter_async_context(AsyncPlacet(access.url, token=access.reviewer))
        async with asyncio.TaskGroup() as group:
            deciding = group.create_task(decide(reviewer, truth))
            working = group.create_task(_work(agents, named, on_passage, at_once))
            working.add_done_callback(lambda _: deciding.cancel())
    return [
        Outcome(execution_id, job, passages, job.is_done(), job.is_compromised())
        for (execution_id, job), passages in zip(named.items(), working.result(), strict=True)
    ]


async def _work(
    agents: Mapping[str, AsyncPlacet], named: Mapping[str, Job], on_passage: OnPassage, at_once: int
) -> list[tuple[Passage, ...]]:
    free = asyncio.Semaphore(at_once)

    async def one(execution_id: str, job: Job) -> tuple[Passage, ...]:
        async with free:
            return tuple(await work(agents[job.office.agent], execution_id, job, on_passage))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(*item)) for item in named.items()]
    return [task.result() for task in tasks]
