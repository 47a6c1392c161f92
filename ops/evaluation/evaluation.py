"""Runs an evaluation: each arm on each suite in a lane of its own, side by side, on one stack."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.identity.issuer import issue
from ops.config import DataDir
from ops.demo.suites import Office
from ops.evaluation.agreement import disagreements, report_differences
from ops.evaluation.arms import Arm
from ops.evaluation.facts import CallFact, executions_in, read_facts
from ops.evaluation.lane import AGENT, Lane, Tokens
from ops.evaluation.reviewing import ERRORS, Judgement
from ops.evaluation.rounds import Tasks
from placet import AsyncPlacet

TENANT = "default"
TOKEN_TTL_S = 24 * 60 * 60


@dataclass(frozen=True)
class Asked:
    """What is to be evaluated.

    Attributes:
        rounds: how often every task is done, clean and attacked.
        seed: of order, values and the reviewer's errors.
        suites: names of agentdojo's suites.
        arms: the arms.
        reviewer: perfect or erring.
        tasks: the number of user tasks of each suite; None for all.
    """

    rounds: int
    seed: int
    suites: tuple[str, ...]
    arms: tuple[Arm, ...]
    reviewer: str
    tasks: int | None = None


@dataclass(frozen=True)
class Measured:
    """What the log has of one lane.

    Attributes:
        lane: the lane.
        calls: its calls, by execution.
        differences: where its own counts differ from the log's, one sentence each.
        approval: the gateway's own report of what adaptive approval did in the project (`/v1/metrics/approval`).
    """

    lane: Lane
    calls: list[CallFact]
    differences: list[str]
    approval: dict[str, Any]


def prepared(asked: Asked, directory: DataDir) -> list[Lane]:
    """The lanes, each with a project that no earlier run has used."""
    start = uuid.uuid4().hex[:6]
    tasks = {name: Tasks(Office(name), asked.seed, asked.tasks) for name in asked.suites}
    return [
        Lane(
            arm=arm,
            tasks=tasks[suite],
            project=(project := f"evaluation-{start}-{arm.name}-{suite}"),
            tokens=tokens(directory, project),
            judgement=Judgement(ERRORS[asked.reviewer], asked.seed),
        )
        for suite in asked.suites
        for arm in asked.arms
    ]


def tokens(directory: DataDir, project: str) -> Tokens:
    """Tokens of one project, by the issuer of a stack's data directory."""

    def token(subject: str, role: str, agent: str | None = None) -> str:
        return issue(directory.keys, subject, [role], TENANT, project, agent, TOKEN_TTL_S)

    return Tokens(
        agent=token(AGENT, "agent", AGENT),
        reviewer=token("evaluation-reviewer", "reviewer"),
        operator=token("evaluation-operator", "operator"),
    )


def evaluate(
    url: str, lanes: Sequence[Lane], rounds: int, on_call: Callable[[], None]
) -> tuple[list[Measured], float]:
    """Drive all lanes, then read what the log has of them; also returns how long driving took, in seconds.

    Raises:
        OpsError: the decider has not adopted the definitions, or the views have not reached the end of the log.
        PlacetError: Placet refused a request, or did not answer.
    """

    async def all_of_it() -> tuple[list[Measured], float]:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(lane.drive(url, rounds, on_call))
        seconds = time.monotonic() - began
        return [await measured(url, lane) for lane in lanes], seconds

    try:
        return asyncio.run(all_of_it())
    except BaseExceptionGroup as errors:
        raise _first(errors) from errors


async def measured(url: str, lane: Lane) -> Measured:
    """Read a lane's calls from the log, and compare them with its own counts."""
    executions = [one for tally in lane.tallies.values() for one in tally.executions]
    async with AsyncPlacet(url, token=lane.tokens.operator) as operator:
        calls = await read_facts(operator, executions)
        # After the wait for the ends of the agent's own: the views have all that it began.
        logged = await executions_in(operator)
        approval = dict(await operator.fetch("/metrics/approval"))
    differences = disagreements(lane, calls, logged) + report_differences(lane.project, calls, approval)
    return Measured(lane, calls, differences, approval)


def _first(error: BaseException) -> BaseException:
    """The first error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
