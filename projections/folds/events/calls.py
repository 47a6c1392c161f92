"""The effects of a tool call's events."""

from collections.abc import Callable, Iterable, Iterator

from projections.folds.acts import TIMER, policy_of
from projections.folds.analytics import Fact, evidence_rows, impact_row, trust_verdict_rows
from projections.folds.effects import Act, Before, Effect, New
from projections.folds.probes import probe_answer_rows
from projections.folds.rows import json_text, json_value, owner_of
from projections.folds.star import rule_verdict_rows
from projections.folds.verdicts import NO_VERDICT
from projections.tables.agents import Counter
from projections.tables.calls import CallRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.adaptive import is_sampled
from schemas.events import calls as c
from schemas.message import Message
from schemas.record import Event
from schemas.trust import FactKind
from schemas.trust_facts import fact_of_revocation

_OF_EFFECT: dict[c.Effect, Counter] = {"allow": "allowed", "hold": "held", "deny": "denied"}


def forget_release(row: CallRow) -> None:
    """Clear a release's columns: it is void once the call is held again or denied before an attempt has it."""
    row.update(
        {
            "approved_arguments": None,
            "grant_id": None,
            "grant_decision_id": None,
            "grant_digest": None,
            "grant_expires_at_ms": None,
            "released_by": None,
            "rule_id": None,
        }
    )


def _forget_attempt(row: CallRow) -> None:
    row.update({"attempt_id": None, "run_deadline_at_ms": None, "lease_ms": None, "lease_until_ms": None})


def _forget_verdict(row: CallRow) -> None:
    row.update(
        {
            "effect": None,
            "rules": None,
            "policy_version": None,
            "verdict_reason": None,
            "verdict_detail": None,
            "risk_score": None,
            "risk_level": None,
            "risk_parts": None,
            "risk_required": None,
            "trust": None,
            "adaptive": None,
            "trust_class": None,
        }
    )


def _propose_first(body: c.ToolCallProposed, event: Event, before: Before) -> CallRow:
    return {
        **owner_of(event),
        "call_id": body.call_id,
        "revision": body.revision,
        "agent": body.agent,
        "tool": body.tool,
        "tool_version": body.tool_version,
        "arguments": body.arguments,
        "digest": body.digest,
        "context": body.context,
        "claims": body.claims,
        "reason": body.reason,
        "proposed_by": body.by,
        "probe": body.probe,
        "probe_result": None,
        "probe_answers": None,
        "senders": None if before.execution is None else before.execution["senders"],
        "message": None if before.turn is None else before.turn["text"],
        "status": "proposed",
        "proposed_arguments": None,
        "approved_arguments": None,
        "edits": None,
        **NO_VERDICT,
        "trust_class": None,
        "hold_id": None,
        "deadline_at_ms": None,
        "decision": None,
        "decision_id": None,
        "decided_by": None,
        "decided_at_ms": None,
        "feedback": None,
        "released_by": None,
        "rule_id": None,
        "grant_id": None,
        "grant_decision_id": None,
        "grant_digest": None,
        "grant_expires_at_ms": None,
        "denied_because": None,
        "rollback": None,
        "attempt_id": None,
        "run_deadline_at_ms": None,
        "lease_ms": None,
        "lease_until_ms": None,
        "output": None,
        "error": None,
        "duration_ms": None,
        "impact_reports": 0,
        "proposed_at_ms": event.meta.at_ms,
        "updated_at_ms": event.meta.at_ms,
        "ended_at_ms": None,
    }


def _propose(row: CallRow, body: c.ToolCallProposed, event: Event) -> None:
    """Apply a new revision: its verdict, grant and attempt are still to come; the edit's decision stays shown."""
    row["proposed_arguments"] = _proposed_arguments(row, body.arguments)
    row.update(
        {
            "revision": body.revision,
            "agent": body.agent,
            "tool": body.tool,
            "tool_version": body.tool_version,
            "arguments": body.arguments,
            "digest": body.digest,
            "context": body.context,
            "claims": body.claims,
            "reason": body.reason,
            "proposed_by": body.by,
            "status": "proposed",
            "approved_arguments": None,
            "deadline_at_ms": None,
            "grant_id": None,
            "grant_decision_id": None,
            "grant_digest": None,
            "grant_expires_at_ms": None,
            "denied_because": None,
            "rollback": None,
        }
    )
    _forget_verdict(row)
    _forget_attempt(row)


def _proposed_arguments(previous: CallRow, arguments: str) -> str | None:
    """The agent's own arguments if a person has edited them; a change of the tool alone is not an edit."""
    if previous["proposed_arguments"] is not None or previous["arguments"] == arguments:
        return previous["proposed_arguments"]
    return previous["arguments"]


def _count_call(row: ExecutionRow, body: c.ToolCallProposed, hold: HoldRow | None) -> None:
    row["calls"] += body.revision == 1
    if body.probe is not None:
        # Versions before ExecutionStarted had its mark opened the run by the same command.
        row["planted"] = 1


def _count_proposal(body: c.ToolCallProposed, call: CallRow) -> tuple[Counter, ...]:
    return ("proposed",) if body.revision == 1 else ()


def _judge(row: CallRow, body: c.PolicyVerdictIssued, event: Event) -> None:
    row.update(
        {
            "effect": body.effect,
            "rules": json_text(body.rules),
            "policy_version": body.policy_version,
            "verdict_reason": body.reason,
            "verdict_detail": body.detail,
            "risk_score": body.risk_score,
            "risk_level": body.risk_level,
            "risk_parts": json_text(body.risk_parts),
            "risk_required": body.risk_required,
            "trust": body.trust,
            "adaptive": body.adaptive,
            "history": body.history,
            "trust_class": body.trust_class or None,
        }
    )


def _verdict_rows(body: c.PolicyVerdictIssued, event: Event, before: Before) -> Iterator[New]:
    yield from rule_verdict_rows(body, event, before.call)
    yield from trust_verdict_rows(body, event, before.call)


def _count_verdict(body: c.PolicyVerdictIssued, call: CallRow) -> tuple[Counter, ...]:
    return (_OF_EFFECT[body.effect],)


def _release(row: CallRow, body: c.ToolCallReleased, event: Event) -> None:
    row.update(
        {
            "deadline_at_ms": None,
            "status": "released",
            "approved_arguments": body.arguments,
            "released_by": body.released_by,
            "rule_id": body.rule_id or None,
            "grant_id": body.grant_id,
            "grant_decision_id": body.decision_id,
            "grant_digest": body.digest,
            "grant_expires_at_ms": body.expires_at_ms,
        }
    )
    _forget_attempt(row)


def _told_release(body: c.ToolCallReleased, before: Before) -> Act | None:
    if body.released_by == "decision":
        return None
    return Act(
        policy_of(before.call) if body.released_by == "policy" else f"rule:{body.rule_id}",
        "release",
        before=_arguments(before),
        after=body.arguments,
        digest=body.digest,
    )


def _deny(row: CallRow, body: c.ToolCallDenied, event: Event) -> None:
    row.update(
        {
            "deadline_at_ms": None,
            "status": "expired" if body.cause == "timeout" else "denied",
            "denied_because": body.cause,
            "feedback": body.feedback,
        }
    )
    forget_release(row)


def _told_denial(body: c.ToolCallDenied, before: Before) -> Act | None:
    if body.cause in ("rejected", "timeout", "probe"):
        return None
    subject = policy_of(before.call) if body.cause == "policy" else TIMER
    return Act(subject, "deny", before=_arguments(before), feedback=body.feedback)


def _cancel(row: CallRow, body: c.ToolCallCancelled, event: Event) -> None:
    row.update({"deadline_at_ms": None, "status": "cancelled", "error": body.reason})


def _consume(row: CallRow, body: c.GrantConsumed, event: Event) -> None:
    row.update(
        {
            "status": "consumed",
            "attempt_id": body.attempt_id,
            "run_deadline_at_ms": body.run_deadline_at_ms,
            "lease_ms": body.lease_ms,
            "lease_until_ms": None if body.lease_ms is None else event.meta.at_ms + body.lease_ms,
        }
    )


def _renew(row: CallRow, body: c.LeaseRenewed, event: Event) -> None:
    row["lease_until_ms"] = body.lease_until_ms


def _revoke(row: CallRow, body: c.GrantRevoked, event: Event) -> None:
    row.update({"status": "expired" if body.reason == "expired" else "revoked", "error": body.reason})


def _told_revocation(body: c.GrantRevoked, before: Before) -> Act:
    return Act(body.by or TIMER, "revoke", before=_arguments(before), feedback=body.reason)


def _report_impact(row: CallRow, body: c.ImpactReported, event: Event) -> None:
    row["impact_reports"] += 1


def _told_impact(body: c.ImpactReported, before: Before) -> Act:
    return Act(body.by, "report_impact", before=_arguments(before), feedback=body.reason)


def _end_probe(row: CallRow, body: c.ProbeEnded, event: Event) -> None:
    row.update({"probe_result": body.result, "probe_answers": body.answers})


def _told_probe(body: c.ProbeEnded, before: Before) -> Act:
    after = json_text({"result": body.result, "answers": json_value(body.answers)})
    return Act(body.planted_by, "plant", before=_arguments(before), after=after, feedback=body.note)


def _succeed(row: CallRow, body: c.ToolCallSucceeded, event: Event) -> None:
    row.update(
        {
            "deadline_at_ms": None,
            "status": "succeeded",
            "output": body.output,
            "error": None,
            "duration_ms": body.duration_ms,
        }
    )


def _fail(row: CallRow, body: c.ToolCallFailed, event: Event) -> None:
    row.update(
        {
            "deadline_at_ms": None,
            "status": "failed",
            "error": body.error,
            "duration_ms": body.duration_ms,
        }
    )


def _lose(row: CallRow, body: c.ToolCallOutcomeUnknown, event: Event) -> None:
    row.update({"status": "outcome_unknown", "error": body.reason})


def _arguments(before: Before) -> str | None:
    return None if before.call is None else before.call["arguments"]


def _counts(counter: Counter) -> Callable[[Message, CallRow], tuple[Counter, ...]]:
    counters = (counter,)
    return lambda body, call: counters


def _is_evidence(
    kind: str, fact: FactKind | None = None
) -> Callable[[Message, Event, Before], Iterable[New]]:
    return lambda body, event, before: evidence_rows(event, before.call, kind, Fact(fact))


def _revocation_rows(body: c.GrantRevoked, event: Event, before: Before) -> Iterable[New]:
    if (fact := fact_of_revocation(body.reason)) is not None:
        yield from evidence_rows(event, before.call, "revocation", Fact(fact, (body.by,)))


def _withdrawal_rows(body: c.ToolCallCancelled, event: Event, before: Before) -> Iterable[New]:
    call = before.call
    # Without a class it counts for nothing, so it is no evidence.
    if call is not None and call["trust_class"] and call["status"] == "held" and is_sampled(call["adaptive"]):
        yield from evidence_rows(event, call, "withdrawal", Fact("withdrawal"))


def _impact_rows(body: c.ImpactReported, event: Event, before: Before) -> Iterable[New]:
    if before.call is not None:
        yield impact_row(event, before.call, Fact("impact", (body.by,)))


EFFECTS = (
    Effect(
        c.ToolCallProposed,
        execution=_count_call,
        proposes=_propose_first,
        call=_propose,
        counts=_count_proposal,
    ),
    Effect(
        c.PolicyVerdictIssued,
        call=_judge,
        rows=_verdict_rows,
        counts=_count_verdict,
    ),
    Effect(c.ToolCallReleased, call=_release, audit=_told_release),
    Effect(c.ToolCallDenied, call=_deny, audit=_told_denial),
    Effect(c.ToolCallCancelled, call=_cancel, rows=_withdrawal_rows),
    Effect(c.GrantConsumed, call=_consume),
    Effect(c.LeaseRenewed, call=_renew),
    Effect(c.GrantRevoked, call=_revoke, audit=_told_revocation, rows=_revocation_rows),
    Effect(c.ImpactReported, call=_report_impact, audit=_told_impact, rows=_impact_rows),
    Effect(c.ProbeEnded, call=_end_probe, audit=_told_probe, rows=probe_answer_rows),
    Effect(c.ToolCallSucceeded, call=_succeed, rows=_is_evidence("success"), counts=_counts("succeeded")),
    Effect(c.ToolCallFailed, call=_fail, rows=_is_evidence("failure", "failure"), counts=_counts("failed")),
    Effect(c.ToolCallOutcomeUnknown, call=_lose, rows=_is_evidence("unknown"), counts=_counts("unknown")),
)
