"""The consequences of a verdict: the events that judge, release, deny, hold or revise a call."""

from typing import Any, NamedTuple

from msgspec.structs import asdict, replace

from schemas.adaptive import AdaptiveOutcome, outcome_from_text, outcome_to_text
from schemas.call_history import history_from_text, history_to_text
from schemas.canonical import canonical
from schemas.events import calls as c
from schemas.events import rules as r
from schemas.message import Message
from schemas.probe import probe_to_text
from schemas.requirement import asked_of_edit_from_text
from schemas.standing_rule import StandingRuleDocument
from services.domain.context import GRANT_TTL_MS, Context
from services.domain.execution.adaptive import outcome_of, released_by_trust
from services.domain.execution.folding import Folds, spent_attempts, with_call, with_hold
from services.domain.execution.opening import call_hold, unknown_outcome_hold
from services.domain.memory.coverage import is_of_execution, remembered_for
from services.domain.policy import Verdict
from services.domain.refusals import Events
from services.domain.state import Call, Execution, Reservation

# Parts of the risk of tools whose outputs others decide, and of tools that are not known.
_UNTRUSTED = frozenset({"open_world", "unknown_tool", "unreadable"})
PLANTED = "the call was planted to see whether people notice what is wrong with it, and never runs"
# A call waits this long for a use of a standing rule; then a person is asked.
RESERVATION_MS = 10_000


class Judgement(NamedTuple):
    """What becomes of a call that is judged for the first time.

    `verdict` is the one that is recorded. `outcome` is what the policy's adaptive block made of a hold. `document` is
    the remembered decision that releases the call; with `reserves` a use of it has to be asked for first.
    """

    verdict: Verdict
    outcome: AdaptiveOutcome | None = None
    document: StandingRuleDocument | None = None
    reserves: bool = False


def judgement_of(state: Execution, call: Call, ctx: Context) -> Judgement:
    """The judgement on a call's newest revision: by memory, by trust, or as the policy says."""
    verdict = ctx.judge(state, call)
    for document in remembered_for(state, call, verdict, ctx):
        if (found := _by_memory(call, verdict, document)) is not None:
            return found
    outcome = outcome_of(call, verdict, ctx)
    if outcome is not None and outcome.result == "released":
        verdict = released_by_trust(verdict)
    return Judgement(verdict, outcome)


def judged_events(state: Execution, call: Call, ctx: Context) -> Events:
    """The verdict on a call's newest revision, and its consequence."""
    found = judgement_of(state, call, ctx)
    if found.document is None:
        event = verdict_event(call, found.verdict, ctx, found.outcome)
        return [event, consequence(state, call, found.verdict, ctx)]
    if found.reserves:
        return [_reservation(state, call, found.document, ctx)]
    released = release(call, ctx.new_id("decision", call.call_id), "rule", ctx)
    by_rule = released.model_copy(update={"rule_id": found.document.rule_id})
    return [verdict_event(call, found.verdict, ctx), by_rule]


def _by_memory(call: Call, verdict: Verdict, document: StandingRuleDocument) -> Judgement | None:
    """The judgement by a remembered decision that covers a call; None if it has no use left for this revision."""
    asked = call.reservation if call.reservation and call.reservation.revision == call.revision else None
    if document.uses is not None:
        if asked is None:
            return Judgement(verdict, document=document, reserves=True)
        if not asked.granted or asked.rule_id != document.rule_id:
            return None
    cited = replace(
        verdict,
        effect="allow",
        reason="remembered",
        rules=(*verdict.rules, _citation(document.rule_id)),
        detail=f"a person approved such calls (decision {document.evidence.decision_id}); {verdict.detail}",
        hold=None,
    )
    return Judgement(cited, document=document)


def _citation(rule_id: str) -> str:
    return rule_id if is_of_execution(rule_id) else f"rule:{rule_id}"


def _reservation(
    state: Execution, call: Call, document: StandingRuleDocument, ctx: Context
) -> r.ReservationAsked:
    return r.ReservationAsked(
        call_id=call.call_id,
        revision=call.revision,
        digest=call.digest,
        rule_id=document.rule_id,
        reservation_id=ctx.new_id("reservation", call.call_id, call.revision),
        deadline_at_ms=ctx.now_ms + RESERVATION_MS,
    )


def consequence(state: Execution, call: Call, verdict: Verdict, ctx: Context) -> Message:
    """The consequence of a verdict on a call. Anything but a plain allow or deny is a hold."""
    if verdict.effect == "allow":
        return release(call, ctx.new_id("decision", call.call_id), "policy", ctx)
    if verdict.hold is None:
        return denial(call, "policy", verdict.detail)
    return call_hold(state, call, verdict.hold, ctx)


def denial(call: Call, cause: Any, feedback: str, decision_id: str = "") -> c.ToolCallDenied:
    """The event by which the call will not run."""
    return c.ToolCallDenied(
        call_id=call.call_id, revision=call.revision, cause=cause, feedback=feedback, decision_id=decision_id
    )


def denial_of_probe(call: Call, decision_id: str) -> c.ToolCallDenied:
    """The event that ends a planted call, whatever people decided."""
    return denial(call, "probe", PLANTED, decision_id)


def release(call: Call, decision_id: str, released_by: Any, ctx: Context) -> c.ToolCallReleased:
    """The grant of exactly this revision."""
    return c.ToolCallReleased(
        call_id=call.call_id,
        revision=call.revision,
        digest=call.digest,
        grant_id=ctx.new_id("grant", call.call_id, call.revision),
        decision_id=decision_id,
        released_by=released_by,
        arguments=call.arguments,
        expires_at_ms=ctx.now_ms + GRANT_TTL_MS,
    )


def verdict_event(
    call: Call, verdict: Verdict, ctx: Context, outcome: AdaptiveOutcome | None = None
) -> c.PolicyVerdictIssued:
    """The event that records the verdict, and what the policy's adaptive block made of a hold."""
    return c.PolicyVerdictIssued(
        call_id=call.call_id,
        revision=call.revision,
        effect=verdict.effect,
        rules=verdict.rules,
        policy_version=verdict.policy_version,
        reason=verdict.reason,
        detail=verdict.detail,
        risk_score=verdict.risk.score,
        risk_level=verdict.risk.level,
        risk_parts=verdict.risk.parts,
        risk_required=verdict.risk.required,
        trust=None if verdict.trust is None else canonical(verdict.trust),
        definitions_through=ctx.definitions_through,
        trust_class=verdict.trust_class,
        adaptive=None if outcome is None else outcome_to_text(outcome),
        history=history_to_text(verdict.history),
    )


def outcome_unknown_events(state: Execution, call: Call, reason: str, ctx: Context) -> Events:
    """The outcome is unknown: the event that records it, and the hold that asks a person."""
    unknown = c.ToolCallOutcomeUnknown(call_id=call.call_id, attempt_id=call.attempt_id, reason=reason)
    return [unknown, unknown_outcome_hold(state, call, ctx)]


def revised(call: Call, by: str, **changes: Any) -> tuple[c.ToolCallProposed, Call]:
    """The next revision of a call: its event, and the call after it."""
    requesters = tuple(dict.fromkeys((*call.requesters, by)))
    is_edit = changes.get("arguments", call.arguments) != call.arguments
    new = replace(
        call,
        revision=call.revision + 1,
        requesters=requesters,
        proposed_arguments=call.proposed_arguments or (call.arguments if is_edit else ""),
        status="proposed",
        attempt_id="",
        **changes,
    )
    event = c.ToolCallProposed(
        call_id=new.call_id,
        revision=new.revision,
        agent=new.agent,
        tool=new.tool,
        tool_version=new.tool_version,
        arguments=new.arguments,
        digest=new.digest,
        context=new.context,
        claims=new.claims,
        reason=new.reason,
        by=by,
        probe=probe_to_text(new.probe),
    )
    return event, new


def _judged(state: Execution, event: c.PolicyVerdictIssued, at_ms: int) -> Execution:
    call = state.calls[event.call_id]
    outcome = None if event.adaptive is None else outcome_from_text(event.adaptive)
    call = replace(
        call,
        judged=True,
        definitions_through=event.definitions_through,
        trust_class=event.trust_class,
        by_trust=outcome is not None and outcome.result == "released",
        is_sampled=outcome is not None and outcome.result == "sampled",
        is_untrusted=not _UNTRUSTED.isdisjoint(event.risk_parts),
        values=history_from_text(event.history).values,
    )
    return with_call(state, call)


def _released(state: Execution, event: c.ToolCallReleased, at_ms: int) -> Execution:
    earlier = state.calls[event.call_id]
    call = replace(
        earlier,
        status="released",
        released_by=event.released_by,
        rule_id=event.rule_id,
        decision_id=event.decision_id,
        grant_id=event.grant_id,
        grant_expires_at_ms=event.expires_at_ms,
        attempt_id="",
        spent=spent_attempts(earlier),
    )
    hold = state.holds.get(earlier.hold_id)
    if event.asked is not None and hold is not None:
        # This release depends on the people whom the edit asked, and a second run asks them again.
        asked = asked_of_edit_from_text(event.asked)
        state = with_hold(state, replace(hold, **asdict(asked)))
    return with_call(state, call)


def _denied(state: Execution, event: c.ToolCallDenied, at_ms: int) -> Execution:
    status = "expired" if event.cause == "timeout" else "denied"
    return with_call(state, replace(state.calls[event.call_id], status=status))


def _reserving(state: Execution, event: r.ReservationAsked, at_ms: int) -> Execution:
    asked = Reservation(event.reservation_id, event.rule_id, event.revision, event.deadline_at_ms)
    return with_call(state, replace(state.calls[event.call_id], reservation=asked))


FOLDS: Folds = {
    c.PolicyVerdictIssued: _judged,
    c.ToolCallReleased: _released,
    c.ToolCallDenied: _denied,
    r.ReservationAsked: _reserving,
}
