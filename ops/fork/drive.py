"""The driver of a fork: it proposes what was proposed, decides as was decided, and reports what was returned.

It runs no tool: what a released call returns is what the original's equal call returned. It stops at the first call
for which the original has no answer, since what would have happened then is not known.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ops.fork.recorded import RecordedCall, RecordedQuestion, Run
from ops.fork.saying import Said, Sayings
from ops.fork.stubs import Stub, Stubs, Used, Values, sealed_paths
from placet import AsyncPlacet, ExecutionClosed, QuotaExceeded, Refused, ToolCall, Unavailable
from placet.canonical import canonical
from placet.cli.decide import check_digest
from placet.errors import Unauthenticated
from placet.models import HumanRequest, Recorded

# For how long one request of the gateway waits for a verdict, and how often it is repeated.
VERDICT_WAIT_S = 5.0
VERDICT_TRIES = 12
# A release that the original did not use is not used in the fork either.
UNUSED = ("revoked", "cancelled", "released")
# A call that has ended without running.
ENDED = ("denied", "expired", "cancelled", "revoked")


@dataclass(frozen=True)
class Stop:
    """The call at which the branch stops, how it stood then, and why.

    `status` is the call's, `no_recorded_result`, or `not_proposed`.
    """

    call_id: str
    status: str
    why: str


@dataclass
class Branch:
    """A fork as it is made, through the public API.

    Attributes:
        agent: a client that acts for the agent in the fork's project.
        person: a client of the person who forks, there.
        execution_id: the fork's, and the original's: only the project differs.
        sayings: what to decide.
        stubs: what tools return.
        say: is told each step.
        stopped: where and why the branch stopped; None if it went to the original's end.
        stub_of: the results that were reported, by call.
        used: by call, its values that came out of results which this branch does not have; None if nobody knows.
        unasked: questions that were not asked again, with the reason.
        cursor: of the run's end, to read it no older than that.
    """

    agent: AsyncPlacet
    person: AsyncPlacet
    execution_id: str
    sayings: Sayings
    stubs: Stubs
    say: Callable[[str], None]
    stopped: Stop | None = None
    stub_of: dict[str, Stub] = field(default_factory=dict)
    used: dict[str, tuple[Used, ...] | None] = field(default_factory=dict)
    unasked: dict[str, str] = field(default_factory=dict)
    cursor: str = ""

    async def replay(self, run: Run) -> None:
        """Make the branch, and end its run in any case, so that nothing of it waits for anybody.

        Raises:
            Refused: the run, or a proposal, is refused altogether.
            Unreachable, Unavailable: the gateway does not answer.
        """
        started, values = run.started, Values(run)
        starting = asyncio.create_task(
            self.agent.executions.start(
                self.execution_id,
                agent=started.agent,
                user=started.user or None,
                workspace=started.workspace or None,
                request=started.request or None,
                context=json.loads(started.context),
            )
        )
        try:
            # Shielded: cancelled under way, nobody would know whether there is a run to be ended.
            await asyncio.shield(starting)
            for step in run.steps:
                if isinstance(step, RecordedQuestion):
                    await self._ask(step)
                else:
                    self.stopped = await self._take(step, values)
                if self.stopped is not None:
                    self.say(f"{self.stopped.call_id}: stopped, {self.stopped.why}")
                    break
        except BaseException:
            await asyncio.wait([starting])
            if starting.exception() is None:
                await asyncio.shield(self._end("the fork was given up"))
            raise
        await self._end(self.stopped.why if self.stopped is not None else "")

    async def _end(self, why: str) -> None:
        """Complete the run, or with a reason cancel it: its open holds and releases end with it."""
        try:
            if why:
                ended = await self.person.executions.cancel(self.execution_id, f"fork stopped: {why}")
            else:
                about = {"fork_of": self.execution_id, "at": self.sayings.point.name}
                ended = await self.person.executions.complete(self.execution_id, about)
            self.cursor = ended.cursor
        except ExecutionClosed:
            # A rejection under `on_reject: halt`, or a deadline, has ended it.
            self.say("the run has ended already")

    async def _take(self, step: RecordedCall, values: Values) -> Stop | None:
        """Take one call through all steps; returns why the branch cannot go on, if it cannot."""
        if sealed := sealed_paths(step.arguments):
            why = (
                f"its values at {', '.join(sealed)} are sealed or erased: the log has only their commitments"
            )
            return Stop(step.call_id, "not_proposed", why)
        self.used[step.call_id] = values.used_by(step)
        try:
            call = await self._proposed(step)
        except ExecutionClosed as closed:
            return Stop(step.call_id, "not_proposed", f"the branch's run has ended before: {closed.detail}")
        number = 0
        while call.status == "held":
            found = await self._decided(step, call, number)
            if isinstance(found, Stop):
                return found
            call, number = found, number + 1
        self.say(f"{step.call_id} {step.tool}: {call.status}")
        if number <= self._place_of(step):
            return self._not_asked(step, call)
        return await self._run(step, call, values)

    def _place_of(self, step: RecordedCall) -> int:
        """The hold of the step on which the decision is replaced; -1 on another step."""
        point = self.sayings.point
        return point.number if step.call_id == point.call.call_id else -1

    def _not_asked(self, step: RecordedCall, call: ToolCall) -> Stop:
        verdict = call.verdict
        rules = f" ({', '.join(verdict.rules)})" if verdict is not None and verdict.rules else ""
        said = verdict.effect if verdict is not None else call.status
        why = f"the policy says {said}{rules} here, and asks nobody: there is no decision to replace"
        return Stop(step.call_id, call.status, why)

    async def _proposed(self, step: RecordedCall) -> ToolCall:
        """Propose a call as it was, and wait for the verdict; an agent's quota makes it wait, too."""
        proposed = step.proposed
        while True:
            try:
                call = await self.agent.propose(
                    self.execution_id,
                    step.tool,
                    step.arguments,
                    call_id=step.call_id,
                    annotations=json.loads(proposed.claims),
                    context=json.loads(proposed.context),
                    reason=proposed.reason,
                    wait_s=0,
                )
                break
            except QuotaExceeded as full:
                await asyncio.sleep(float(full.fields.get("retry_after") or 1))
        for _ in range(VERDICT_TRIES):
            if call.status != "proposed":
                return call
            call = await self.agent.call(self.execution_id, step.call_id, wait_s=VERDICT_WAIT_S)
        raise Unavailable("unavailable", 503, f"the call {step.call_id} was not judged: see `placet status`")

    async def _decided(self, step: RecordedCall, call: ToolCall, number: int) -> ToolCall | Stop:
        said = self.sayings.on(step, number)
        if said is None:
            return Stop(step.call_id, "held", "the original has no decision on it")
        try:
            recorded = await self._decide(call, said)
        except (Unavailable, Unauthenticated):
            raise
        except Refused as refused:
            return Stop(step.call_id, "held", f"{said.word} was refused: {refused}")
        if recorded.status != "resolved":
            return Stop(step.call_id, "held", "it asks more than one person, and this fork has one")
        self.say(f"{step.call_id} {step.tool}: {said.comment}")
        return await self.agent.call(self.execution_id, step.call_id, after=recorded.cursor)

    async def _decide(self, call: ToolCall, said: Said) -> Recorded:
        hold = await self.person.holds.get(call.hold_id, after=call.cursor)
        check_digest(hold, "")
        view = await self.person.holds.view(hold.hold_id)
        return await self.person.holds.decide(
            hold.hold_id,
            said.word,
            digest=hold.digest,
            view_digest="" if said.word == "reject" else view.view_digest,
            edited_arguments=said.arguments,
            feedback=said.comment,
            scope="once" if said.remember is None else "execution",
            remember=said.remember,
        )

    async def _run(self, step: RecordedCall, call: ToolCall, values: Values) -> Stop | None:
        """Take the grant and report the recorded result; no tool runs."""
        if call.status in ENDED:
            return None
        if call.status != "released" or call.grant is None:
            return Stop(step.call_id, call.status, f"it is {call.status}, and not released")
        arguments = call.arguments if call.approved_arguments is None else call.approved_arguments
        final = canonical(dict(arguments)).decode()
        if step.status in UNUSED and step.final_arguments == final and self._place_of(step) < 0:
            if step.status == "revoked":
                await self.person.revoke(self.execution_id, step.call_id, reason="revoked, as recorded")
            return None
        stub = self.stubs.of(step.call_id, call.tool, final)
        if stub is None:
            why = "the original has no result of this tool with these arguments (no recorded result)"
            return Stop(step.call_id, "no_recorded_result", why)
        attempt = await self.agent.consume(self.execution_id, step.call_id, call.grant.digest)
        result = stub.result
        failed = result.outcome == "failed"
        await self.agent.result(
            self.execution_id,
            step.call_id,
            attempt,
            result.outcome,
            output=None if failed else result.output,
            error=result.text if failed else "",
        )
        self.stub_of[step.call_id] = stub
        values.got[step.call_id] = result
        return None

    async def _ask(self, step: RecordedQuestion) -> None:
        """Ask a question again, and answer it as it was answered."""
        asked, answer = step.asked, step.answer
        decision = None if answer is None else answer.decision
        if asked.kind == "env_var":
            self._leave(step, "its variables are not in the log")
            return
        if decision is None and step.provided is None:
            self._leave(step, "nobody answered it")
            return
        request = await self.agent.requests.ask(**_question(step, self.execution_id))
        timed_out = step.provided is not None and step.provided.timed_out
        comment = self.sayings.on_question(answer, timed_out=timed_out)
        word = "respond" if decision is None else decision.decision
        await self._answer(request, word, step, comment)
        self.say(f"{asked.request_id}: {comment}")

    async def _answer(self, request: HumanRequest, word: str, step: RecordedQuestion, comment: str) -> None:
        value = None
        if word == "respond" and step.provided is not None:
            value = json.loads(step.provided.response)
        try:
            await self.person.holds.decide(request.hold_id, word, feedback=comment, value=value)
        except (Unavailable, Unauthenticated):
            raise
        except Refused as refused:
            self._leave(step, f"{word} was refused: {refused}")

    def _leave(self, step: RecordedQuestion, why: str) -> None:
        self.unasked[step.asked.request_id] = why
        self.say(f"{step.asked.request_id}: not repeated, {why}")


def _question(step: RecordedQuestion, execution_id: str) -> dict[str, Any]:
    """A question as it was asked; what it left out is left out."""
    asked = step.asked
    given: Mapping[str, Any] = {
        "kind": asked.kind,
        "request_id": asked.request_id,
        "options": json.loads(asked.options) or None,
        "fields": json.loads(asked.fields) or None,
        "decision_type": asked.decision_type or None,
        "allow_custom": asked.allow_custom or None,
        "multiple": asked.multiple or None,
        "tool": asked.tool or None,
        "action": asked.action or None,
        "risk": asked.risk or None,
    }
    told = {name: value for name, value in given.items() if value is not None}
    return {"question": asked.question, "execution_id": execution_id, **told}
