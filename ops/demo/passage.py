"""One call through Placet, step by step with the SDK, so that the time to the verdict can be measured.

The SDK's `run.gated` does the same in one line (docs/sdk.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ops.demo.suites import Call
from placet import AsyncPlacet, ToolCall
from placet.gate import Proposal, verified
from placet.ids import new_id

WAIT_S = 5.0
NS_PER_MS = 1_000_000
MOST_ERROR_CHARS = 4_000


@dataclass(frozen=True)
class Passage:
    """The outcome of one call.

    Attributes:
        call: the call that the agent proposed.
        injected: True if an attacker's text made the agent propose it.
        effect: the policy's verdict: allow, hold or deny.
        rules: the rules that led to the verdict.
        decision: the reviewer's decision: approve, edit, reject; empty if there was none.
        status: how the call ended: succeeded, failed, denied, expired, cancelled or revoked.
        verdict_ms: time from proposal to verdict, at the client.
        output: the tool's return value.
        error: the tool's exception, or why the call was stopped.
    """

    call: Call
    injected: bool
    effect: str
    rules: tuple[str, ...]
    decision: str
    status: str
    verdict_ms: float
    output: Any = None
    error: str = ""

    @property
    def ran(self) -> bool:
        """True if the tool ran, whether or not it succeeded."""
        return self.status in ("succeeded", "failed")


async def take(
    placet: AsyncPlacet, execution_id: str, call: Call, injected: bool, run: Callable[[Call], Any]
) -> Passage:
    """Take a call through all steps: propose, decide, verify, consume, run, report.

    Args:
        placet: the agent's client.
        execution_id: the execution that the call belongs to.
        call: the call that the agent wants to make.
        injected: for the report only; it is not sent to Placet.
        run: runs a call on the suite's environment.
    """
    proposal = Proposal(execution_id, new_id(), call.tool, call.arguments, placet.agent)
    started_ns = time.perf_counter_ns()
    judged = await _judged(placet, proposal)
    verdict_ms = (time.perf_counter_ns() - started_ns) / NS_PER_MS
    decided = await placet.wait(execution_id, proposal.call_id) if judged.pending else judged
    status, output, error = decided.status, None, decided.feedback if decided.stopped else ""
    if decided.status == "released":
        status, output, error = await _run(placet, decided, proposal, run)
    verdict = judged.verdict
    return Passage(
        call=call,
        injected=injected,
        effect=verdict.effect if verdict else "",
        rules=verdict.rules if verdict else (),
        decision=decided.decision.decision if decided.decision else "",
        status=status,
        verdict_ms=verdict_ms,
        output=output,
        error=error,
    )


async def _judged(placet: AsyncPlacet, proposal: Proposal) -> ToolCall:
    """Propose, and wait for the verdict: while no decider runs, the call stays `proposed`."""
    call = await placet.propose(
        proposal.execution_id, proposal.tool, proposal.arguments, call_id=proposal.call_id
    )
    while call.status == "proposed":
        call = await placet.call(proposal.execution_id, proposal.call_id, wait_s=WAIT_S)
    return call


async def _run(
    placet: AsyncPlacet, released: ToolCall, proposal: Proposal, run: Callable[[Call], Any]
) -> tuple[str, Any, str]:
    """Run exactly what was released; returns the status, the tool's return value and its exception."""
    arguments = verified(released, proposal)
    ids = released.execution_id, released.call_id
    attempt = await placet.consume(*ids, released.grant.digest if released.grant else released.digest)
    started_ns = time.perf_counter_ns()
    output, error = None, ""
    try:
        output = run(Call(released.tool, arguments))
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"[:MOST_ERROR_CHARS]
    outcome = "failed" if error else "succeeded"
    duration_ms = (time.perf_counter_ns() - started_ns) // NS_PER_MS
    await placet.result(*ids, attempt, outcome, output=output, error=error, duration_ms=duration_ms)
    return outcome, output, error
