"""One call's way through Placet, step by step with the SDK, so that the time to the verdict can be taken.

`run.gated` of the SDK does the same in one line (docs/sdk.md).
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
    """What became of one call.

    Attributes:
        call: what the agent asked for.
        injected: whether an attacker's text made the agent ask.
        effect: the policy's verdict: allow, hold or deny.
        rules: the rules that said so.
        decision: a person's word: approve, edit, reject; empty when nobody was asked or nobody answered.
        status: how the call ended: succeeded, failed, denied, expired, cancelled or revoked.
        verdict_ms: from proposing to the verdict, at the client.
        output: what the tool returned.
        error: what the tool raised, or why the call was stopped.
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
        """Whether the tool was run, with whatever end."""
        return self.status in ("succeeded", "failed")


async def take(
    placet: AsyncPlacet, execution_id: str, call: Call, injected: bool, run: Callable[[Call], Any]
) -> Passage:
    """Bring a call through: proposed, decided, verified, consumed, run, reported.

    Args:
        placet: the agent's client.
        execution_id: the run that it belongs to.
        call: what the agent wants.
        injected: for the record only; Placet is not told.
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
    """Propose, and wait for the verdict: a decider that is away leaves the call `proposed` meanwhile."""
    call = await placet.propose(
        proposal.execution_id, proposal.tool, proposal.arguments, call_id=proposal.call_id
    )
    while call.status == "proposed":
        call = await placet.call(proposal.execution_id, proposal.call_id, wait_s=WAIT_S)
    return call


async def _run(
    placet: AsyncPlacet, released: ToolCall, proposal: Proposal, run: Callable[[Call], Any]
) -> tuple[str, Any, str]:
    """Run what was released, and nothing else; how it ended, what it returned and what it raised."""
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
