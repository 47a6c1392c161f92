"""One lane: an arm on a suite in a project of its own, round after round, each call by the client's gate."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from ops.demo.agent import Script
from ops.demo.suites import Call, Job
from ops.errors import OpsError
from ops.evaluation.arms import Arm
from ops.evaluation.effects import definitions
from ops.evaluation.reviewing import Judgement, review
from ops.evaluation.rounds import Run, Tasks
from placet import AsyncPlacet, Denied, PlacetError, Published
from placet.execution import AsyncExecution

AGENT = "assistant"
POLICY = "evaluation"
# Executions that an agent works on side by side, as in the demo; the next round begins when all have ended.
AT_ONCE = 4


@dataclass(frozen=True)
class Tokens:
    """Tokens of one project."""

    agent: str
    reviewer: str
    operator: str


@dataclass
class Tally:
    """The lane's own counts of one round, to be compared with the log's.

    Attributes:
        calls: calls by `own` or `injected`, and by their end: succeeded, failed, stopped.
        executions: the ids, in order.
        compromised: the ids of those in which agentdojo says that the attack reached its goal.
        seconds: how long the round took.
    """

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    executions: list[str] = field(default_factory=list)
    compromised: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass
class Lane:
    """An arm on a suite.

    Attributes:
        arm: the arm.
        tasks: the suite's tasks.
        project: its project.
        tokens: for that project.
        judgement: the reviewer's.
        tallies: by round, filled by `drive`.
    """

    arm: Arm
    tasks: Tasks
    project: str
    tokens: Tokens
    judgement: Judgement
    tallies: dict[int, Tally] = field(default_factory=dict)

    async def drive(self, url: str, rounds: int, on_call: Callable[[], None]) -> None:
        """Publish tools and policy, then do the rounds while the reviewer decides.

        Raises:
            OpsError: the decider has not adopted the definitions.
            PlacetError: Placet refused a request, or did not answer.
        """
        await self._publish(url)
        async with AsyncExitStack() as clients:
            agent = await clients.enter_async_context(AsyncPlacet(url, token=self.tokens.agent, agent=AGENT))
            reviewer = await clients.enter_async_context(AsyncPlacet(url, token=self.tokens.reviewer))
            async with asyncio.TaskGroup() as group:
                deciding = group.create_task(review(reviewer, self.judgement, remembers=self.arm.remembers))
                working = group.create_task(self._rounds(agent, rounds, on_call))
                working.add_done_callback(lambda _: deciding.cancel())

    async def _publish(self, url: str) -> None:
        async with AsyncPlacet(url, token=self.tokens.operator) as operator:
            for name, definition in definitions(self.tasks.office.suite.tools).items():
                _check_adopted(await operator.tools.put(name, definition))
            document = self.arm.policy.read_text(encoding="utf-8")
            _check_adopted(await operator.policies.publish(POLICY, document))

    async def _rounds(self, agent: AsyncPlacet, rounds: int, on_call: Callable[[], None]) -> None:
        for number in range(1, rounds + 1):
            tally = self.tallies[number] = Tally()
            began = time.monotonic()
            await self._round(agent, number, tally, on_call)
            tally.seconds = time.monotonic() - began

    async def _round(
        self, agent: AsyncPlacet, number: int, tally: Tally, on_call: Callable[[], None]
    ) -> None:
        free = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for run in self.tasks.round(number):
                await free.acquire()
                self.judgement.expect(run.execution_id, number, run.job.truth)
                doing = group.create_task(_do(agent, run, tally, on_call))
                doing.add_done_callback(lambda _: free.release())


def _check_adopted(published: Published) -> None:
    if missing := published.raw.get("pending"):
        raise OpsError(f"{published.name} was published, but partitions {missing} have not adopted it.")


async def _do(placet: AsyncPlacet, run: Run, tally: Tally, on_call: Callable[[], None]) -> None:
    """Do one execution; a call that is stopped is skipped, and the next one is tried."""
    script, number = Script(run.job), 0
    tally.executions.append(run.execution_id)
    async with placet.execution(run.execution_id, request=run.job.request) as execution:
        while (wanted := script.next()) is not None:
            number += 1
            call, injected = wanted
            whose = "injected" if injected else "own"
            end, output = await _gated(execution, run.job, call, f"{number:02}-{whose}")
            tally.calls[whose, end] += 1
            on_call()
            script.read(output)
        execution.result = run.job.answer
    if run.job.is_compromised():
        tally.compromised.append(run.execution_id)


async def _gated(execution: AsyncExecution, job: Job, call: Call, call_id: str) -> tuple[str, Any]:
    """Take one call through the SDK's gate; returns how it ended, and what the tool returned or how it failed."""

    async def act(**arguments: Any) -> Any:
        return job.run(Call(call.tool, arguments))

    try:
        return "succeeded", await execution.gated(tool=call.tool, call_id=call_id)(act)(**call.arguments)
    except Denied:
        return "stopped", None
    except PlacetError:
        raise
    except Exception as failure:  # the tool's own, which the gate has recorded
        return "failed", f"{type(failure).__name__}: {failure}"
