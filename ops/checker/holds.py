"""The checker's own model of holds: who may end one, until when, and with how many voices."""

from __future__ import annotations

from collections.abc import Callable

from ops.checker.calls import HoldSeen, RunSeen
from ops.checker.facts import Fact

REVIEWERS = frozenset({"reviewer", "operator", "admin"})


def hold_event(run: RunSeen, fact: Fact) -> None:
    """Take an event about a hold."""
    if fact.type == "HoldOpened":
        _opened(run, fact)
        return
    hold = run.holds.get(fact.body.hold_id)
    if hold is None:
        run.say("I6", fact, "an event of a hold that was never opened", fact.body.hold_id)
        return
    if hold.state != "open":
        run.say("I4", fact, f"{fact.type} of a hold that is {hold.state}", fact.body.hold_id)
    _STEPS[fact.type](run, hold, fact)


def _opened(run: RunSeen, fact: Fact) -> None:
    body = fact.body
    if body.hold_id in run.holds:
        run.say("I4", fact, "a hold's id was used twice", body.hold_id)
    run.holds[body.hold_id] = HoldSeen(body, body.deadline_at_ms, roles=body.roles)
    if not body.call_id:
        return
    call = run.calls.get(body.call_id)
    if call is None or (call.revision, call.digest) != (body.revision, body.digest):
        run.say("I1", fact, "a hold on another revision or digest than the call's", body.digest)
        return
    waiting = "outcome_unknown" if body.cause == "outcome_unknown" else "held"
    before = {"outcome_unknown"} if body.cause == "outcome_unknown" else {"proposed", "released"}
    if call.state not in before:
        run.say("I4", fact, f"a hold opened on a call that is {call.state}", body.hold_id)
    call.state = waiting


def _decided(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    body = fact.body
    if (body.revision, body.digest) != (hold.opened.revision, hold.opened.digest):
        run.say("I1", fact, "a decision on another revision or digest than the hold's", body.digest)
    if hold.deadline_at_ms is not None and fact.at_ms >= hold.deadline_at_ms:
        run.say("I5", fact, "a decision after the deadline", hold.deadline_at_ms, fact.at_ms)
    if body.by in hold.voters:
        run.say("I10", fact, "one person counted twice", body.by)
    _check_authority(run, hold, fact)
    hold.voters.append(body.by)
    if body.resolves and body.decision == "approve" and len(set(hold.voters)) < hold.opened.quorum:
        run.say("I10", fact, "resolved without its quorum", hold.opened.quorum, *hold.voters)
    if body.resolves:
        hold.state = "resolved"
    run.decided(fact)


def _check_authority(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    body, call = fact.body, run.calls.get(hold.opened.call_id)
    requesters = {hold.opened.requester, *(call.proposers if call else ())}
    if hold.opened.exclude_requester and body.by in requesters:
        run.say("I10", fact, "the requester decided where another person is asked for", body.by)
    wanted = set(hold.roles) or REVIEWERS
    if not wanted & set(body.roles) and hold.delegated_to != body.by:
        run.say("I10", fact, "decided without a role that the hold asks for", body.by, *body.roles)


def _expired(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    if hold.deadline_at_ms is None or fact.at_ms < hold.deadline_at_ms:
        run.say("I5", fact, "a hold expired early", hold.deadline_at_ms, fact.at_ms)
    hold.state = "expired"


def _cancelled(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    hold.state = "cancelled"


def _escalated(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    hold.roles = (*(hold.roles or tuple(REVIEWERS)), *fact.body.roles)
    hold.deadline_at_ms = fact.body.deadline_at_ms


def _extended(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    hold.deadline_at_ms = fact.body.deadline_at_ms


def _delegated(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    hold.delegated_to = fact.body.to


def _noted(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    """Who is on it binds nobody."""


_STEPS: dict[str, Callable[[RunSeen, HoldSeen, Fact], None]] = {
    "DecisionRecorded": _decided,
    "HoldExpired": _expired,
    "HoldCancelled": _cancelled,
    "HoldEscalated": _escalated,
    "HoldExtended": _extended,
    "HoldDelegated": _delegated,
    "HoldClaimed": _noted,
    "HoldUnclaimed": _noted,
}
HOLD_EVENTS = frozenset({"HoldOpened", *_STEPS})
