"""Rows that analysts count: one for each vote, each difference that an edit made, each piece of evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from projections.folds.edits import patch_of
from projections.folds.effects import New, new
from projections.folds.rows import json_text, json_value, owner_of, source_of
from projections.folds.states import TERMINAL
from projections.tables.analytics import (
    EDITS,
    EVIDENCE,
    TRUST_VERDICTS,
    VOTES,
    EditRow,
    EvidenceRow,
    TrustVerdictRow,
    VoteRow,
)
from projections.tables.calls import CallRow
from projections.tables.holds import HoldRow
from schemas.adaptive import is_sampled, outcome_from_text
from schemas.canonical import canonical, parse_strict
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.json_pointer import value_at
from schemas.record import Event
from schemas.refusals import Refusal
from schemas.trust import FactKind
from schemas.trust_facts import fact_of_decision

# The outcome of a vote: it ended the hold; others are still needed; it came after the end; it was refused.
DECIDED, COUNTED, LOST, REFUSED = "decided", "counted", "lost", "refused"
_TOO_LATE = frozenset({Refusal.ALREADY_DECIDED, Refusal.EXPIRED, Refusal.NOT_OPEN, Refusal.EXECUTION_CLOSED})


def vote_of(body: h.DecisionRecorded, event: Event, hold: HoldRow | None) -> New:
    """The row of a person's vote that counts."""
    row = _vote(body, event, hold)
    row.update(
        {
            "revision": body.revision,
            "person": body.person or None,
            "roles": json_text(body.roles),
            "outcome": DECIDED if body.resolves else COUNTED,
            "decision_id": body.decision_id,
            "feedback": body.feedback,
            "view_digest": body.view_digest or None,
            "dwell_ms": body.dwell_ms,
        }
    )
    return new(VOTES, row)


def refused_vote_of(body: h.DecisionRefused, event: Event, hold: HoldRow | None) -> New:
    """The row of a person's vote that was refused."""
    row = _vote(body, event, hold)
    row.update(
        {
            "outcome": LOST if body.code in _TOO_LATE else REFUSED,
            "code": str(body.code),
            "detail": body.detail,
            "winning_decision_id": body.winning_decision_id or None,
        }
    )
    return new(VOTES, row)


def _vote(body: h.DecisionRecorded | h.DecisionRefused, event: Event, hold: HoldRow | None) -> VoteRow:
    return {
        **owner_of(event),
        **source_of(event),
        "hold_id": body.hold_id,
        "call_id": None if hold is None else hold["call_id"],
        "request_id": None if hold is None else hold["request_id"],
        "agent": None if hold is None else hold["agent"],
        "tool": None if hold is None else hold["tool"],
        "digest": body.digest,
        "subject": body.by,
        "decision": body.decision,
        "revision": None,
        "person": None,
        "roles": None,
        "outcome": "",
        "code": None,
        "detail": None,
        "decision_id": None,
        "winning_decision_id": None,
        "feedback": "",
        "view_digest": None,
        "dwell_ms": None,
    }


def edits_of(body: h.DecisionRecorded, event: Event, call: CallRow | None) -> Iterator[New]:
    """The differences that an edit makes, one row each; none for other decisions."""
    if call is None or body.decision != "edit" or body.edited_arguments is None:
        return
    before: Any = parse_strict(call["arguments"])
    for number, one in enumerate(patch_of(before, parse_strict(body.edited_arguments)), 1):
        row: EditRow = {
            **owner_of(event),
            **source_of(event),
            "call_id": call["call_id"],
            "revision": call["revision"] + 1,
            "number": number,
            "agent": call["agent"],
            "tool": call["tool"],
            "hold_id": body.hold_id,
            "decision_id": body.decision_id,
            "subject": body.by,
            "op": one["op"],
            "path": one["path"],
            "before": None if one["op"] == "add" else canonical(value_at(before, one["path"])),
            "after": None if one["op"] == "remove" else canonical(one["value"]),
            "feedback": body.feedback,
        }
        yield new(EDITS, row)


class Fact(NamedTuple):
    """What a piece of evidence counts as for the class of calls, and whose word it is; the kind None: for none."""

    kind: FactKind | None
    by: tuple[str, ...] = ()


def evidence_rows(event: Event, call: CallRow | None, kind: str, fact: Fact) -> Iterator[New]:
    """The row of evidence of how an agent uses a tool; none once the call has ended (docs/trust.md)."""
    if call is not None and call["status"] not in TERMINAL and call["probe"] is None:
        yield _evidence(event, call, kind, fact)


def impact_row(event: Event, call: CallRow, fact: Fact) -> New:
    """The row of a report of harm, which mostly comes after the end of the call."""
    return _evidence(event, call, "impact", fact)


def _evidence(event: Event, call: CallRow, kind: str, fact: Fact) -> New:
    counts = call["trust_class"] is not None and fact.kind is not None
    row: EvidenceRow = {
        **owner_of(event),
        **source_of(event),
        "call_id": call["call_id"],
        "agent": call["agent"],
        "tool": call["tool"],
        "kind": kind,
        "trust_class": call["trust_class"] if counts else None,
        "fact": fact.kind if counts else None,
        "words_of": json_text(fact.by) if counts else None,
        "requester": call["proposed_by"] if counts else None,
    }
    return new(EVIDENCE, row)


def word_on_call(body: h.DecisionRecorded, call: CallRow, hold: HoldRow | None) -> Fact:
    """What a person's word counts as for the class of calls; an approval is also that of those who voted before."""
    kind = fact_of_decision(
        body.decision, is_edited=call["edits"] is not None, is_sampled=is_sampled(call["adaptive"])
    )
    votes = [] if hold is None or body.decision != "approve" else json_value(hold["votes"])
    earlier = (str(vote["by"]) for vote in votes if vote["decision"] == "approve")
    return Fact(kind, (*earlier, body.by))


def trust_verdict_rows(body: c.PolicyVerdictIssued, event: Event, call: CallRow | None) -> Iterator[New]:
    """The row of a verdict for which trust was weighed; none for any other."""
    if body.adaptive is None or call is None or call["probe"] is not None:
        return
    outcome = outcome_from_text(body.adaptive)
    row: TrustVerdictRow = {
        **owner_of(event),
        **source_of(event),
        "agent": call["agent"],
        "tool": call["tool"],
        "call_id": body.call_id,
        "revision": body.revision,
        "trust_class": body.trust_class,
        "result": outcome.result,
        "why": outcome.why,
        "lower_bound": outcome.lower_bound,
        "required": outcome.required,
        "risk_level": body.risk_level,
        "sample_rate": outcome.sample_rate,
        "draw": outcome.draw,
    }
    yield new(TRUST_VERDICTS, row)


def is_about_running(body: h.DecisionRecorded, call: CallRow) -> bool:
    """Returns True if a vote decided whether a call runs: not one that waits for others, nor one on an outcome."""
    return body.resolves and call["status"] != "outcome_unknown"
