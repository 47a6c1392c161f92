"""Backtest: a log with people's decisions, replayed against a candidate policy.

The history is made by signed commands that are produced straight to Kafka (`seed`): in each execution nine calls that
are allowed, run at once and reported, and one that a reviewer approves or, in every fifth execution, rejects.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from ops.bench.agent import READ, WRITE, run_id
from ops.bench.bench import POLICY, TOOLS, Bench
from ops.bench.load import TIMEOUT_S, BenchFailedError
from ops.bench.result import Figure, Result, Target
from ops.bench.seed import send, until_held
from ops.bench.site import PROJECT, TENANT, Site
from schemas.actor import Actor
from schemas.canonical import call_digest, canonical, tool_version_of
from schemas.commands import CompleteExecution, DecideHold, ProposeToolCall, ReportResult, StartExecution
from schemas.envelope import Draft
from schemas.ids import derived_id, execution_key
from schemas.message import Message
from schemas.tool_definition import tool_to_publish

READS, REJECTED_EVERY = 9, 5
EVENTS_A_SECOND, MEMORY_MIB = Target(20_000, at_most=False), Target(1_024)
HELD = f"c{READS}"


async def fill(job: dict[str, Any]) -> dict[str, Any]:
    """Make the log, and wait until the decider has opened every hold."""
    site = Site(**job["site"])
    await send(site, _drafts(site, run_id(), job["executions"]))
    await until_held(site, job["executions"])
    return {}


def _drafts(site: Site, name: str, executions: int) -> Iterator[Draft]:
    agent = Actor(subject=site.agent, tenant=TENANT, project=PROJECT, roles=("agent",), agent=site.agent)
    reviewer = Actor(subject="reviewer", tenant=TENANT, project=PROJECT, roles=("reviewer",))
    version = tool_version_of(tool_to_publish(WRITE, TOOLS[1]))
    for number in range(executions):
        execution_id = f"{name}-{number}"
        key = execution_key(TENANT, PROJECT, execution_id)
        decided = _decided(site, execution_id, version, is_rejected=number % REJECTED_EVERY == 0)
        bodies = [(agent, body) for body in _run(site)]
        bodies[-1:-1] = [(reviewer, decided)]
        for index, (actor, body) in enumerate(bodies):
            yield Draft(body, actor, derived_id("bench", execution_id, index), key)


def _run(site: Site) -> Iterator[Message]:
    """The commands of an agent: its run, with the held call as the last but one."""
    yield StartExecution(agent=site.agent)
    for number in range(READS):
        call_id, attempt_id = f"c{number}", f"a{number}"
        yield ProposeToolCall(call_id=call_id, tool=READ, arguments=_arguments(number), attempt_id=attempt_id)
        yield ReportResult(call_id=call_id, attempt_id=attempt_id, outcome="succeeded", duration_ms=1)
    yield ProposeToolCall(call_id=HELD, tool=WRITE, arguments=_arguments(READS))
    yield CompleteExecution()


def _decided(site: Site, execution_id: str, version: str, *, is_rejected: bool) -> DecideHold:
    hold_id = derived_id("hold", TENANT, PROJECT, execution_id, HELD, 1)
    digest = call_digest(TENANT, site.agent, WRITE, version, _arguments(READS))
    return DecideHold(hold_id=hold_id, decision="reject" if is_rejected else "approve", digest=digest)


def _arguments(number: int) -> str:
    return canonical({"path": "notes/today.txt", "call": number})


def measure(bench: Bench) -> Result:
    """Events a second of a backtest, signatures verified, against the policy in force."""
    bench.load("ops.bench.backtest:fill", "making a log", executions=bench.size(6_500, 30))
    bench.tell("placet policy backtest")
    found = _backtested(bench.site)
    bench.tell("placet policy backtest --processes 1")
    alone = _backtested(bench.site, "--processes", "1")
    reproduced = all(one["reproduced"] == one["judged"] for one in (found, alone))
    return Result(
        "backtest",
        (
            Figure(
                "placet policy backtest, a process for each core",
                found["records"] / found["seconds"],
                "events/s",
                target=None if bench.is_quick else EVENTS_A_SECOND,
            ),
            Figure("the same in one process", alone["records"] / alone["seconds"], "events/s"),
            Figure(
                "most memory of a process",
                getrusage(RUSAGE_CHILDREN).ru_maxrss / 1024,
                "MiB",
                target=MEMORY_MIB,
            ),
            Figure("events in the log", found["records"], "events"),
            Figure("verdicts judged again", found["judged"], "verdicts"),
        ),
        "every verdict came out as recorded" if reproduced else "some verdicts were not reproduced",
    )


def _backtested(site: Site, *more: str) -> dict[str, Any]:
    command = [
        str(Path(sys.executable).with_name("placet")),
        "policy",
        "backtest",
        str(POLICY),
        "--json",
        *more,
    ]
    done = subprocess.run(  # noqa: S603 - the command is built here
        [*command, "--data-dir", site.data_dir], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    if done.returncode != 0:
        raise BenchFailedError(f"placet policy backtest failed: {done.stderr.strip() or done.stdout.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
