"""The hold's row and resource: what a person sees, who may decide, and how it ends."""

from __future__ import annotations

import json

import pytest

from projections.folds.calls import call_json
from projections.folds.holds import hold_json, hold_resource, request_json
from projections.folds.rows import Row
from projections.tables.holds import HOLDS
from schemas.events import holds as h
from schemas.headers import rfc3339
from schemas.message import Message
from tests.projections.folding import KEY, events_of, state_of
from tests.projections.histories import AGENT, HOUR_MS, START_MS, decided, held, judged, proposed, started

CALL = proposed("c1", {"amount": 5})
HOLD = held(KEY, CALL)
OPEN: list[Message] = [started(), CALL, judged(CALL), HOLD]
ASKED = h.HumanInputRequested(
    request_id="r1",
    hold_id="h-r1",
    kind="clarification",
    question="Which account?",
    options='["A","B"]',
    fields="[]",
    decision_type="choice",
    by="svc",
)
REQUEST_HOLD = held(
    KEY, CALL, hold_id="h-r1", call_id="", request_id="r1", revision=0, digest="", kind="clarification",
    cause="request", question="Which account?", options='["A","B"]', on_timeout="default", default_value='"A"',
)  # fmt: skip


def hold_after(*bodies: Message, hold_id: str = HOLD.hold_id) -> Row:
    return state_of(*bodies).holds[hold_id]


def test_open_hold_has_exactly_the_columns_of_its_table() -> None:
    assert set(hold_after(*OPEN)) == set(HOLDS.names)
    assert set(hold_after(started(), ASKED, hold_id="h-r1")) == set(HOLDS.names)


def test_open_hold_shows_what_would_run_and_why_it_waits() -> None:
    state = state_of(*OPEN)
    shown, call = hold_json(state.holds[HOLD.hold_id]), call_json(state.calls["c1"])
    assert shown["status"] == "open"
    for name in ("tool", "arguments", "digest", "verdict", "agent", "reason", "tool_version"):
        assert shown[name] == call[name], name
    assert shown["risk"] == call["verdict"]["risk"]
    assert shown["question"] == HOLD.question
    assert shown["roles"] == ["treasurer"]
    assert shown["deadline_at"] == rfc3339(START_MS + HOUR_MS)
    assert shown["exclude_requester"] is True


def test_hold_keeps_the_arguments_that_were_seen_when_the_call_moves_on() -> None:
    second = proposed("c1", {"amount": 1}, revision=2)
    shown = hold_json(hold_after(*OPEN, decided(HOLD, "edit", edited_arguments=second.arguments), second))
    assert shown["arguments"] == {"amount": 5}
    assert (shown["status"], shown["decision"]["decision"]) == ("resolved", "edit")


def test_votes_are_listed_and_only_the_last_resolves() -> None:
    first, last = decided(HOLD, by="ann@acme", resolves=False), decided(HOLD, by="bob@acme")
    shown = hold_json(hold_after(*OPEN, first))
    assert (shown["status"], [vote["by"] for vote in shown["votes"]]) == ("open", ["ann@acme"])
    shown = hold_json(hold_after(*OPEN, first, last))
    assert (shown["status"], shown["decision"]["by"]) == ("resolved", "bob@acme")
    assert [vote["by"] for vote in shown["votes"]] == ["ann@acme", "bob@acme"]


def test_votes_say_what_they_ask_to_be_remembered_and_those_of_before_nothing() -> None:
    asked = '{"arguments":{"amount":{"at_most":9}}}'
    vote = decided(HOLD, by="ann@acme", resolves=False)
    row = hold_after(*OPEN, vote.model_copy(update={"scope": "execution", "remember": asked}))
    (shown,) = hold_json(row)["votes"]
    assert (shown["scope"], shown["remember"]) == ("execution", {"arguments": {"amount": {"at_most": 9}}})
    old = {key: value for key, value in shown.items() if key not in ("scope", "remember")}
    (shown,) = hold_json(row | {"votes": json.dumps([old])})["votes"]
    assert (shown["scope"], shown["remember"]) == ("once", None)


def test_claim_unclaim_and_delegation_say_who_is_on_it() -> None:
    claimed = h.HoldClaimed(hold_id=HOLD.hold_id, by="ann@acme")
    assert hold_after(*OPEN, claimed)["claimed_by"] == "ann@acme"
    freed = h.HoldUnclaimed(hold_id=HOLD.hold_id, by="ann@acme")
    assert hold_after(*OPEN, claimed, freed)["claimed_by"] is None
    handed = h.HoldDelegated(hold_id=HOLD.hold_id, by="ann@acme", to="bob@acme")
    row = hold_after(*OPEN, claimed, handed)
    assert (row["claimed_by"], row["assignee"]) == (None, "bob@acme")


def test_escalation_asks_more_people_and_happens_once() -> None:
    opened = held(KEY, CALL, on_timeout="escalate", escalate_roles=("cfo",))
    later = START_MS + 2 * HOUR_MS
    escalated = h.HoldEscalated(hold_id=HOLD.hold_id, by="placet:timer", roles=("cfo",), deadline_at_ms=later)
    shown = hold_json(hold_after(started(), CALL, judged(CALL), opened, escalated))
    assert (shown["status"], shown["escalated"], shown["on_timeout"]) == ("open", True, "deny")
    assert shown["roles"] == ["treasurer", "cfo"]
    assert shown["deadline_at"] == rfc3339(later)


def test_expiry_closes_a_hold() -> None:
    row = hold_after(*OPEN, h.HoldExpired(hold_id=HOLD.hold_id, on_timeout="deny"))
    assert (row["status"], row["closed_at_ms"]) == ("expired", START_MS + 5000)


def test_cancelled_hold_is_closed() -> None:
    row = hold_after(*OPEN, h.HoldCancelled(hold_id=HOLD.hold_id, reason="execution cancelled"))
    assert row["status"] == "cancelled"


def test_answered_request_shows_its_response() -> None:
    word = decided(REQUEST_HOLD, "respond", value='"B"')
    answer = h.HumanInputProvided(
        request_id="r1", hold_id="h-r1", response='"B"', by="ann@acme", timed_out=False
    )
    row = hold_after(started(), ASKED, REQUEST_HOLD, word, answer, hold_id="h-r1")
    shown = request_json(row)
    assert (shown["status"], shown["response"], shown["by"]) == ("resolved", "B", "ann@acme")
    assert (row["agent"], shown["options"], shown["decision_type"]) == (AGENT, ["A", "B"], "choice")


def test_request_that_timed_out_shows_its_default() -> None:
    gone_by = h.HoldExpired(hold_id="h-r1", on_timeout="default")
    default = h.HumanInputProvided(
        request_id="r1", hold_id="h-r1", response='"A"', by="placet:timer", timed_out=True
    )
    shown = request_json(hold_after(started(), ASKED, REQUEST_HOLD, gone_by, default, hold_id="h-r1"))
    assert (shown["status"], shown["response"], shown["timed_out"]) == ("expired", "A", True)


@pytest.mark.parametrize("on_timeout", ["deny", "default", "halt"])
def test_hold_that_time_ended_has_timed_out(on_timeout: h.OnTimeout) -> None:
    gone_by = h.HoldExpired(hold_id=HOLD.hold_id, on_timeout=on_timeout)
    assert hold_json(hold_after(*OPEN, gone_by))["timed_out"] is True


def test_event_of_another_hold_changes_nothing() -> None:
    row = hold_after(*OPEN)
    (event,) = events_of([h.HoldClaimed(hold_id="another", by="ann@acme")])
    assert hold_resource(row, event) is row
