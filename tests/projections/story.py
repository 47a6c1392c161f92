"""One run in which everything happens that analysts ask about: a quorum, a race, an edit, a deadline, a doubt."""

from __future__ import annotations

from schemas.events import calls as c
from schemas.events import holds as h
from schemas.refusals import Refusal
from tests.projections.histories import (
    LogBuilder,
    consumed,
    decided,
    denied,
    failed,
    held,
    judged,
    key_of,
    proposed,
    released,
    started,
    succeeded,
)

KEY = key_of("run-1")
BEFORE, AFTER = {"amount": 98.7, "to": "GB29"}, {"amount": 50, "to": "GB29", "note": "\x00half"}


def refused(hold: h.HoldOpened, by: str, decision: str, code: Refusal, winner: str = "") -> h.DecisionRefused:
    return h.DecisionRefused.model_validate(
        {
            "hold_id": hold.hold_id,
            "decision": decision,
            "digest": hold.digest,
            "code": code,
            "detail": "too late",
            "winning_decision_id": winner,
            "by": by,
        }
    )


def story() -> LogBuilder:
    """The log of it, in one partition."""
    log = LogBuilder(1).claim_all()
    log.append(KEY, [started()])
    _by_two(log)
    _edited(log)
    call = proposed("by-policy", {"path": "/inbox"}, tool="list_mail")
    log.append(KEY, [call, judged(call, "allow"), released(call, released_by="policy")])
    log.append(KEY, [consumed(call)])
    log.append(KEY, [succeeded(call)])
    _expired(log)
    _in_doubt(log)
    call = proposed("waiting", BEFORE)
    log.append(KEY, [call, judged(call), held(KEY, call)])
    _unused(log)
    return log


def _unused(log: LogBuilder) -> None:
    """Releases by policy with which nothing ran."""
    for call_id, reason in (("unused", "expired"), ("taken-back", "changed my mind")):
        call = proposed(call_id, {"path": "/inbox"}, tool="list_mail")
        log.append(KEY, [call, judged(call, "allow"), released(call, released_by="policy")])
        log.append(KEY, [c.GrantRevoked(call_id=call_id, revision=1, reason=reason, by="ann@acme")])
    call = proposed("stricter-since", {"path": "/inbox"}, tool="list_mail")
    log.append(KEY, [call, judged(call, "allow"), released(call, released_by="policy")])
    log.append(KEY, [judged(call, "deny"), denied(call, "policy")])


def _by_two(log: LogBuilder) -> None:
    call = proposed("by-two", BEFORE)
    hold = held(KEY, call, quorum=2)
    log.append(KEY, [call, judged(call), hold])
    log.append(KEY, [decided(hold, by="ann@acme", decision_id="d-ann", resolves=False, dwell_ms=900)])
    word = decided(hold, by="bob@acme", decision_id="d-bob", dwell_ms=8_000)
    log.append(KEY, [word, released(call, word.decision_id)])
    log.append(KEY, [refused(hold, "carl@acme", "reject", Refusal.ALREADY_DECIDED, "d-bob")])
    log.append(KEY, [consumed(call)])
    log.append(KEY, [succeeded(call)])


def _edited(log: LogBuilder) -> None:
    call = proposed("edited", BEFORE)
    hold = held(KEY, call)
    log.append(KEY, [call, judged(call), hold])
    second = proposed("edited", AFTER, revision=2)
    again = held(KEY, second)
    edit = decided(hold, "edit", edited_arguments=second.arguments, feedback="half of it", dwell_ms=4_000)
    log.append(KEY, [edit, second, judged(second), again])
    word = decided(again, by="bob@acme")
    log.append(KEY, [word, released(second, word.decision_id)])
    log.append(KEY, [consumed(second)])
    log.append(KEY, [failed(second)])


def _expired(log: LogBuilder) -> None:
    call = proposed("too-late", BEFORE)
    hold = held(KEY, call)
    log.append(KEY, [call, judged(call), hold])
    log.append(KEY, [h.HoldExpired(hold_id=hold.hold_id, on_timeout="deny"), denied(call, "timeout")])
    log.append(KEY, [refused(hold, "ann@acme", "approve", Refusal.EXPIRED)])
    log.append(KEY, [refused(hold, "eve@acme", "approve", Refusal.FORBIDDEN_ROLE)])


def _in_doubt(log: LogBuilder) -> None:
    call = proposed("in-doubt", BEFORE)
    hold = held(KEY, call)
    log.append(KEY, [call, judged(call), hold])
    word = decided(hold)
    log.append(KEY, [word, released(call, word.decision_id)])
    log.append(KEY, [consumed(call)])
    unknown = c.ToolCallOutcomeUnknown(call_id="in-doubt", attempt_id="a", reason="deadline")
    doubt = held(KEY, call, hold_id="hold-doubt", cause="outcome_unknown")
    log.append(KEY, [unknown, doubt])
    log.append(KEY, [decided(doubt, "reject", decision_id="d-doubt", feedback="it did not run")])
