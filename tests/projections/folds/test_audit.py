"""The audit trail: one row for each act of authority, none for what nobody decided."""

from __future__ import annotations

import json

import pytest

from projections.folds.audit import entry_of
from projections.folds.effects import Before
from projections.folds.rows import Row
from projections.queries.history import fold_all
from projections.tables.audit import AUDIT_ENTRIES
from schemas.events import EVENTS
from schemas.events import calls as c
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.message import Message
from schemas.refusals import Refusal
from tests.projections.folding import KEY, events_of
from tests.projections.histories import consumed, decided, denied, held, judged, proposed, released, started

CALL = proposed("c1", {"amount": 5})
HOLD = held(KEY, CALL)
HELD: list[Message] = [started(), CALL, judged(CALL), HOLD]
LET_GO: list[Message] = [started(), CALL, judged(CALL, "allow"), released(CALL, released_by="policy")]
ASKED = held(KEY, CALL, hold_id="h-q", call_id="", request_id="q", on_timeout="default", default_value='"A"')
NO_DEFAULT = held(KEY, CALL, hold_id="h-q", call_id="", request_id="q")
TIMED_OUT = h.HumanInputProvided(
    request_id="q", hold_id="h-q", response='"A"', by="placet:timer", timed_out=True
)
TAKEN = h.SecretsDelivered(request_id="q", attempt_id="a", until_ms=7, by="bot")
ERASED = h.SecretsErased(call_id="c1", request_id="", reason="", by="ann@acme")

HARM = c.ImpactReported(
    call_id="c1", revision=1, agent="bot", tool="pay", trust_class="", reason="twice", by="ann@acme"
)


def last_entry_of(*bodies: Message) -> Row | None:
    """The audit row of the last body, after the others."""
    *earlier, last = events_of(bodies)
    state = fold_all(earlier)
    fields = last.body.__dict__
    hold = state.holds.get(fields.get("hold_id", ""))
    call = state.calls.get(fields.get("call_id", "") or (hold["call_id"] if hold else "") or "")
    return entry_of(last, Before(state.execution, call, hold))


@pytest.mark.parametrize(
    ("history", "subject", "action"),
    [
        ([*HELD, decided(HOLD)], "ann@acme", "approve"),
        ([*HELD, decided(HOLD, "reject", feedback="no")], "ann@acme", "reject"),
        (LET_GO, "policy:production@3", "release"),
        ([started(), CALL, judged(CALL, "deny"), denied(CALL, "policy")], "policy:production@3", "deny"),
        ([*HELD, h.HoldExpired(hold_id=HOLD.hold_id, on_timeout="deny")], "placet:timer", "expire"),
        ([*HELD, h.HoldClaimed(hold_id=HOLD.hold_id, by="ann@acme")], "ann@acme", "claim"),
        ([*HELD, c.GrantRevoked(call_id="c1", revision=1, reason="role lost", by="bob@acme")], "bob@acme", "revoke"),
        ([started(), x.ExecutionPaused(reason="wait", by="ann@acme")], "ann@acme", "pause"),
        ([started(), ASKED, TIMED_OUT], "placet:timer", "default"),
        ([started(), TAKEN], "bot", "take_secrets"),
        ([started(), CALL, ERASED], "ann@acme", "erase_secrets"),
        ([*HELD, decided(HOLD), released(CALL), consumed(CALL), HARM], "ann@acme", "report_impact"),
    ],
)  # fmt: skip
def test_act_of_authority_names_who_and_what(history: list[Message], subject: str, action: str) -> None:
    row = last_entry_of(*history)
    assert row is not None
    assert (row["subject"], row["action"]) == (subject, action)
    assert set(row) == set(AUDIT_ENTRIES.names)


def test_approval_names_call_hold_digest_and_exactly_what_was_approved() -> None:
    row = last_entry_of(*HELD, decided(HOLD))
    assert row is not None
    assert (row["call_id"], row["hold_id"], row["digest"]) == ("c1", HOLD.hold_id, CALL.digest)
    assert row["before"] == row["after"] == CALL.arguments


def test_edit_shows_the_arguments_before_and_after() -> None:
    row = last_entry_of(*HELD, decided(HOLD, "edit", edited_arguments='{"amount":1}'))
    assert row is not None
    assert (row["before"], row["after"]) == (CALL.arguments, '{"amount":1}')


def test_refused_decision_is_kept_with_its_code_and_the_winner() -> None:
    refused = h.DecisionRefused(
        hold_id=HOLD.hold_id,
        decision="approve",
        digest=CALL.digest,
        code=Refusal.ALREADY_DECIDED,
        detail="too late",
        winning_decision_id="d-1",
        by="bob@acme",
    )
    row = last_entry_of(*HELD, decided(HOLD), refused)
    assert row is not None
    assert (row["subject"], row["action"], row["feedback"]) == ("bob@acme", "approve_refused", "too late")
    assert json.loads(row["after"]) == {"code": "already_decided", "winning_decision_id": "d-1"}


def test_refused_command_is_named_in_words() -> None:
    refused = x.CommandRefused(
        code=Refusal.ALREADY_CONSUMED, command="ConsumeGrant", subject_id="c1", detail="another", by="svc"
    )
    row = last_entry_of(*HELD, refused)
    assert row is not None
    assert row["action"] == "consume_grant_refused"


@pytest.mark.parametrize(
    "history",
    [
        [started()],
        [started(), CALL],
        HELD,
        [*HELD, decided(HOLD), released(CALL)],
        [*HELD, decided(HOLD), released(CALL), consumed(CALL)],
        [*HELD, decided(HOLD, "reject"), denied(CALL, "rejected")],
        [started(), NO_DEFAULT, TIMED_OUT.model_copy(update={"response": "null"})],
    ],
)
def test_what_nobody_decided_leaves_no_row(history: list[Message]) -> None:
    assert last_entry_of(*history) is None


def test_every_event_that_names_a_person_is_considered() -> None:
    decides_nothing = {
        "ExecutionStarted", "ExecutionCompleted", "ExecutionFailed", "ToolCallProposed", "GrantConsumed",
        "LeaseRenewed", "MessageSent", "ReplyPosted", "TurnClaimed", "TurnRenewed", "TurnYielded", "TurnEnded",
        "ToolCallSucceeded", "ToolCallFailed", "HumanInputRequested", "PolicyPublished", "ToolPublished",
        "UserJoined",
        "PrincipalPublished", "DataKeyDestroyed", "PolicyRetired",
        "RuleMade", "RuleActivated", "RuleSuspended", "RuleRevoked",
    }  # fmt: skip
    from projections.folds.events import EFFECTS

    named = {model.__name__ for model in EVENTS if "by" in model.model_fields}
    assert named - {model.__name__ for model, effect in EFFECTS.items() if effect.audit} == decides_nothing
