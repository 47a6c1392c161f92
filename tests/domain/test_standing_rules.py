"""Standing rules: what an approval is remembered for, what that covers, and everything that ends it."""

import json
from typing import Any

import pytest

from schemas import commands as k
from schemas.canonical import canonical
from schemas.events.rules import RuleActivated, RuleMade, RuleRevoked, RuleSuspended
from schemas.message import Message
from services.domain.memory.rule_uses import USED_UP
from tests.domain.ruled import (
    DAY_S,
    GB,
    MILD,
    decide,
    make,
    pay,
    plain,
    publish,
    refusal,
    ruled,
    settle,
    unlimited,
    world,
)
from tests.domain.world import (
    BOT,
    OLGA,
    RITA,
    World,
    names,
    published,
    rule,
    the,
)


def test_approve_for_a_rule_says_all_of_it_beside_the_release() -> None:
    made = world()
    events = decide(made, pay(made, "first"), scope="rule")
    assert names(events) == ["DecisionRecorded", "ToolCallReleased", "RuleAsked"]
    document = json.loads(the(events, "RuleAsked").document)
    assert document["arguments"] == {"amount": {"equals": 100}, "to": {"equals": "GB29"}}
    assert document["policy_rules"] == ["p/payments"]
    assert document["uses"] == 10
    assert document["expires_at_ms"] == made.now_ms + DAY_S * 1000
    assert document["evidence"]["decision_id"] == the(events, "DecisionRecorded").decision_id
    assert document["evidence"]["digest"] == the(events, "DecisionRecorded").digest
    assert (document["made_by"], document["four_eyes"]) == ("rita", False)


def test_propose_what_a_rule_covers_releases_it_and_cites_the_rule() -> None:
    made = unlimited()
    rule_id = ruled(made)
    events = pay(made, "second")
    assert names(events) == ["ToolCallProposed", "PolicyVerdictIssued", "ToolCallReleased"]
    verdict, release = the(events, "PolicyVerdictIssued"), the(events, "ToolCallReleased")
    assert (verdict.effect, verdict.reason) == ("allow", "remembered")
    assert verdict.rules[0].endswith("/payments")
    assert verdict.rules[1] == f"rule:{rule_id}"
    assert (release.released_by, release.rule_id) == ("rule", rule_id)
    assert release.decision_id != the(made_events(made), "RuleAsked").decision_id


def made_events(made: World) -> list[Message]:
    return [event.body for event in made.events]


@pytest.mark.parametrize(
    "arguments",
    [
        {"amount": 101, "to": "GB29"},
        {"amount": 100, "to": "GB30"},
        {"amount": 100},
        {"amount": 100, "to": "GB29", "note": "x"},
    ],
)
def test_propose_other_arguments_than_the_approved_ones_is_held(arguments: dict[str, Any]) -> None:
    made = unlimited()
    ruled(made)
    assert "HoldOpened" in names(pay(made, "second", arguments))


def test_propose_at_most_the_bound_of_a_rule_is_released_and_above_it_held() -> None:
    made = unlimited()
    events = decide(
        made,
        pay(made, "first"),
        scope="rule",
        remember={"uses": None, "arguments": {"amount": {"at_most": 100}}},
    )
    make(made, the(events, "RuleAsked"))
    assert "ToolCallReleased" in names(pay(made, "second", {"amount": 3.5, "to": "GB29"}))
    assert "HoldOpened" in names(pay(made, "third", {"amount": 100.01, "to": "GB29"}))


def test_propose_what_the_policy_denies_is_denied_whatever_a_rule_covers() -> None:
    made = unlimited()
    events = decide(
        made,
        pay(made, "first"),
        scope="rule",
        remember={"uses": None, "arguments": {"amount": {"any": True}}},
    )
    make(made, the(events, "RuleAsked"))
    assert names(pay(made, "second", {"amount": 5000, "to": "GB29"}))[-1] == "ToolCallDenied"


def test_propose_after_the_expiry_is_held() -> None:
    made = unlimited()
    ruled(made, expires_seconds=60)
    made.later(59)
    assert "ToolCallReleased" in names(pay(made, "second"))
    made.later(1)
    assert "HoldOpened" in names(pay(made, "third"))


@pytest.mark.parametrize(
    "change",
    [
        rule("payments", "pay", "hold", quorum=2),
        rule("payments", "pay", "hold", roles=["cfo"]),
        rule("payments", "pay", "hold", exclude_requester=True),
        rule("payments", "pay", "hold", excluded=["eve"]),
        rule("others", "pay", "hold"),
        {**rule("payments", "pay", "hold"), "when": "args.nothing == 1.0"},
    ],
)
def test_propose_what_the_policy_now_asks_more_for_is_held(change: dict[str, Any]) -> None:
    made = unlimited()
    ruled(made)
    made.definitions = published(made.definitions, [change])
    assert "HoldOpened" in names(pay(made, "second"))


def test_propose_with_another_version_of_the_tool_is_held() -> None:
    made = unlimited()
    ruled(made)
    made.definitions = published(made.definitions, tools=[{**MILD[0], "description": "another"}])
    assert "HoldOpened" in names(pay(made, "second"))


def test_propose_while_a_rule_is_proposed_suspended_or_revoked_is_held() -> None:
    made = unlimited()
    events = decide(made, pay(made, "first"), scope="rule", remember={"uses": None})
    rule_id = make(made, the(events, "RuleAsked"), "proposed")
    assert "HoldOpened" in names(pay(made, "a"))
    publish(made, RuleActivated(rule_id=rule_id, reason="", by="rudi"))
    assert "ToolCallReleased" in names(pay(made, "b"))
    publish(made, RuleSuspended(rule_id=rule_id, reason="", evidence="{}", by="rudi"))
    assert "HoldOpened" in names(pay(made, "c"))
    publish(made, RuleActivated(rule_id=rule_id, reason="", by="rudi"))
    publish(made, RuleRevoked(rule_id=rule_id, reason="", by="rudi"))
    assert "HoldOpened" in names(pay(made, "d"))


def test_consume_after_the_rule_was_suspended_is_held_again() -> None:
    made = unlimited()
    rule_id = ruled(made)
    release = the(pay(made, "second"), "ToolCallReleased")
    publish(made, RuleSuspended(rule_id=rule_id, reason="", evidence="{}", by="rudi"))
    events = made.ask(k.ConsumeGrant(call_id="second", digest=release.digest, attempt_id="a"))
    assert names(events) == ["PolicyVerdictIssued", "HoldOpened", "CommandRefused"]
    assert the(events, "HoldOpened").cause == "definition_changed"


@pytest.mark.parametrize("other", ["0", "~"], ids=["an id before", "an id after"])
def test_consume_after_the_rule_was_suspended_is_not_covered_by_another_rule(other: str) -> None:
    made = unlimited()
    events = decide(made, pay(made, "first"), scope="rule", remember={"uses": None})
    asked = the(events, "RuleAsked")
    rule_id = make(made, asked)
    release = the(pay(made, "second"), "ToolCallReleased")
    document = canonical({**json.loads(asked.document), "rule_id": other})
    publish(made, RuleMade(rule_id=other, status="active", reason="", document=document, by="rita"))
    publish(made, RuleSuspended(rule_id=rule_id, reason="", evidence="{}", by="rudi"))
    events = made.ask(k.ConsumeGrant(call_id="second", digest=release.digest, attempt_id="a"))
    assert "GrantConsumed" not in names(events)
    assert "CommandRefused" in names(events)


def test_consume_while_the_rule_is_active_is_consumed() -> None:
    made = unlimited()
    ruled(made)
    release = the(pay(made, "second"), "ToolCallReleased")
    made.definitions = published(made.definitions, plain(max_uses="unlimited"))
    events = made.ask(k.ConsumeGrant(call_id="second", digest=release.digest, attempt_id="a"))
    assert names(events) == ["GrantConsumed"]


def test_propose_what_a_limited_rule_covers_waits_for_a_use_and_is_released_with_it() -> None:
    made = world()
    ruled(made, uses=1)
    waiting = pay(made, "second")
    assert names(waiting) == ["ToolCallProposed", "ReservationAsked"]
    events = settle(made, the(waiting, "ReservationAsked"), True)
    assert names(events) == ["ReservationSettled", "PolicyVerdictIssued", "ToolCallReleased"]
    assert refusal(settle(made, the(waiting, "ReservationAsked"), True)).code == "duplicate"


def test_settle_without_a_use_asks_a_person_and_asks_that_rule_no_more() -> None:
    made = world()
    ruled(made, uses=1)
    asked = the(pay(made, "second"), "ReservationAsked")
    assert names(settle(made, asked, False, USED_UP)) == [
        "ReservationSettled",
        "PolicyVerdictIssued",
        "HoldOpened",
    ]
    assert names(pay(made, "third")) == ["ToolCallProposed", "PolicyVerdictIssued", "HoldOpened"]


def test_settle_after_the_rule_was_suspended_asks_a_person() -> None:
    made = world()
    rule_id = ruled(made, uses=1)
    asked = the(pay(made, "second"), "ReservationAsked")
    publish(made, RuleSuspended(rule_id=rule_id, reason="", evidence="{}", by="rudi"))
    assert "HoldOpened" in names(settle(made, asked, True))


def test_settle_after_ten_seconds_is_too_late() -> None:
    made = world()
    ruled(made, uses=1)
    asked = the(pay(made, "second"), "ReservationAsked")
    made.later(10)
    events = made.ask(k.ExpireDue(subject_id="call/second", deadline_at_ms=asked.deadline_at_ms, attempt=1))
    assert names(events) == ["ReservationSettled", "PolicyVerdictIssued", "HoldOpened"]
    assert refusal(settle(made, asked, True)).code == "duplicate"


def test_settle_in_a_pause_releases_on_the_resume() -> None:
    made = world()
    ruled(made, uses=1)
    asked = the(pay(made, "second"), "ReservationAsked")
    made.ask(k.PauseExecution(), OLGA)
    assert names(settle(made, asked, True)) == ["ReservationSettled"]
    resumed = made.ask(k.ResumeExecution(), OLGA)
    assert names(resumed) == ["ExecutionResumed", "PolicyVerdictIssued", "ToolCallReleased"]


def test_propose_in_a_pause_what_a_limited_rule_covers_asks_on_the_resume() -> None:
    made = world()
    ruled(made, uses=1)
    made.ask(k.PauseExecution(), OLGA)
    assert names(pay(made, "second")) == ["ToolCallProposed"]
    resumed = made.ask(k.ResumeExecution(), OLGA)
    assert names(resumed) == ["ExecutionResumed", "ReservationAsked"]
    assert made.state().parked == ()
    assert made.state().reserving == ("second",)


def test_settle_by_anybody_but_a_decider_is_refused() -> None:
    made = world()
    ruled(made, uses=1)
    asked = the(pay(made, "second"), "ReservationAsked")
    command = k.SettleReservation(
        call_id="second", revision=1, reservation_id=asked.reservation_id, granted=True, number=1, detail=""
    )
    more = OLGA.model_copy(update={"roles": ("system", "zeta")})
    other = OLGA.model_copy(update={"roles": ("zeta",)})
    for actor in (BOT, RITA, OLGA, more, other):
        assert refusal(made.ask(command, actor)).code == "not_authorised"


def test_cancel_of_a_run_ends_a_wait_for_a_use() -> None:
    made = world()
    ruled(made, uses=1)
    asked = the(pay(made, "second"), "ReservationAsked")
    assert "ToolCallCancelled" in names(made.ask(k.CancelExecution(), OLGA))
    assert made.state().reserving == ()
    assert refusal(settle(made, asked, True)).code == "duplicate"


def test_revoke_what_a_rule_released_contradicts_it_and_it_rests_here_at_once() -> None:
    made = unlimited()
    rule_id = ruled(made)
    pay(made, "second")
    events = made.ask(k.RevokeGrant(call_id="second"), RITA)
    assert names(events) == ["RuleContradicted", "GrantRevoked"]
    assert the(events, "RuleContradicted").rule_id == rule_id
    assert "HoldOpened" in names(pay(made, "third"))
    (change,) = [found for found in made.partition.rule_changes.every.values() if found.kind == "suspend"]
    publish(made, RuleSuspended(rule_id=rule_id, reason="", evidence=change.text, by="placet:decider"))
    publish(made, RuleActivated(rule_id=rule_id, reason="", by="rudi"))
    assert "ToolCallReleased" in names(pay(made, "fourth"))


@pytest.mark.parametrize(
    ("decision", "content", "contrary"),
    [
        ("reject", {}, True),
        ("respond", {"value": '"no"'}, True),
        ("edit", {"edited_arguments": '{"amount":1,"to":"GB29"}'}, True),
        ("edit", {"edited_arguments": '{"amount":100,"to":"GB29"}'}, False),
        ("approve", {}, False),
    ],
)
def test_decide_against_what_a_rule_covers_contradicts_it(
    decision: str, content: dict[str, Any], contrary: bool
) -> None:
    made = unlimited()
    waiting = pay(made, "waiting")
    ruled(made)
    events = decide(made, waiting, decision, **content)
    assert ("RuleContradicted" in names(events)) is contrary


def test_reject_what_no_rule_covers_contradicts_nothing() -> None:
    made = unlimited()
    ruled(made)
    events = decide(made, pay(made, "second", {"amount": 1, "to": "GB29"}), "reject")
    assert names(events) == ["DecisionRecorded", "ToolCallDenied"]


def test_approve_for_the_run_covers_the_run_and_no_other() -> None:
    made = world()
    events = decide(made, pay(made, "first"), scope="execution")
    decision_id = the(events, "DecisionRecorded").decision_id
    assert names(events) == ["DecisionRecorded", "ToolCallReleased"]
    release = the(pay(made, "second"), "ToolCallReleased")
    assert release.rule_id == f"execution:{decision_id}"
    made.ask(k.StartExecution(agent="bot"), execution_id="y")
    command = k.ProposeToolCall(call_id="p", tool="pay", arguments=canonical(GB))
    assert "HoldOpened" in names(made.ask(command, execution_id="y"))


def test_revoke_what_the_run_remembers_ends_that() -> None:
    made = world()
    decide(made, pay(made, "first"), scope="execution")
    pay(made, "second")
    assert names(made.ask(k.RevokeGrant(call_id="second"), RITA)) == ["RuleContradicted", "GrantRevoked"]
    assert "HoldOpened" in names(pay(made, "third"))
    assert made.partition.rule_changes.every == {}


def test_rule_of_named_people_does_not_stand_for_any_reviewer() -> None:
    """A clerk need not be a reviewer: a rule of the policy that comes to name nobody asks reviewers."""
    free = {"four_eyes": False, "max_uses": "unlimited"}
    clerk = RITA.model_copy(update={"subject": "cleo", "roles": ("clerk",)})
    named = rule("payments", "pay", "hold", roles=["clerk"], remember=free)
    made = world([named])
    asked = decide(made, pay(made, "first"), actor=clerk, scope="rule", remember={"uses": None})
    make(made, the(asked, "RuleAsked"))
    assert "ToolCallReleased" in names(pay(made, "second"))
    made.definitions = published(made.definitions, plain(max_uses="unlimited"))
    assert "HoldOpened" in names(pay(made, "third"))
