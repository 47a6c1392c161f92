"""What an approval may be remembered for: the policy bounds it, and what cannot be is refused before it counts."""

import json
from typing import Any

import pytest

from schemas import commands as k
from schemas.limits import JSON_MAX_DEPTH
from tests.domain.ruled import (
    DAY_S,
    GB,
    RUDI,
    decide,
    make,
    pay,
    plain,
    refusal,
    ruled,
    unlimited,
    world,
)
from tests.domain.world import CLARA, PAY_SCHEMA, RITA, World, names, published, rule, the, with_people

SHIP = {"name": "ship", "inputSchema": PAY_SCHEMA}
MILD_SHIP = {**SHIP, "annotations": {"destructiveHint": False}}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"scope": "rule", "remember": {"uses": 0}}, "invalid"),
        ({"scope": "rule", "remember": {"uses": 1001}}, "invalid"),
        ({"scope": "rule", "remember": {"uses": None}}, "invalid"),
        ({"scope": "rule", "remember": {"use": 1}}, "invalid"),
        ({"scope": "rule", "remember": {"expires_seconds": 31 * DAY_S}}, "invalid"),
        ({"scope": "rule", "remember": {"arguments": {"amount": {"at_most": 99}}}}, "invalid"),
        ({"scope": "rule", "remember": {"arguments": {"amount": {}}}}, "invalid"),
        ({"scope": "rule", "remember": {"arguments": {"amount": {"equals": 100, "at_most": 9}}}}, "invalid"),
        ({"scope": "rule", "remember": {"arguments": {"other": {"any": True}}}}, "invalid"),
        ({"scope": "execution", "remember": {"uses": 1}}, "invalid"),
        ({"scope": "once", "remember": {}}, "invalid"),
        ({"scope": "rule", "decision": "reject"}, "invalid"),
    ],
)
def test_decide_asking_to_remember_what_cannot_be_is_refused(content: dict[str, Any], code: str) -> None:
    made = world()
    waiting = pay(made, "first")
    assert refusal(decide(made, waiting, **content)).code == code
    assert names(decide(made, waiting)) == ["DecisionRecorded", "ToolCallReleased"]


def test_decide_for_a_rule_where_the_policy_forbids_it_is_refused() -> None:
    made = world(plain(scopes=["execution"]))
    assert refusal(decide(made, pay(made, "first"), scope="rule")).code == "invalid"


def test_decide_for_a_rule_without_its_role_is_refused() -> None:
    made = world(plain(roles=["cfo"]))
    waiting = pay(made, "first")
    assert refusal(decide(made, waiting, scope="rule")).code == "forbidden_role"
    assert refusal(decide(made, waiting, scope="rule", value="{")).code == "forbidden_role", "told first"


def test_decide_for_a_rule_by_a_delegate_names_who_handed_the_hold_on_as_no_second_person() -> None:
    made = world()
    waiting = pay(made, "first")
    hold_id = the(waiting, "HoldOpened").hold_id
    made.ask(k.DelegateHold(hold_id=hold_id, to="zoe"), RUDI)
    zoe = RUDI.model_copy(update={"subject": "zoe", "roles": ()})

    asked = the(decide(made, waiting, actor=zoe, scope="rule"), "RuleAsked")

    assert json.loads(asked.document)["requesters"] == ["bot", "rudi"]


def test_decide_for_a_rule_before_the_last_voice_makes_none_yet() -> None:
    made = world([rule("payments", "pay", "hold", quorum=2, remember={"four_eyes": False})])
    waiting = pay(made, "first")
    assert refusal(decide(made, waiting, scope="rule", remember={"uses": 5_000})).code == "invalid"
    assert names(decide(made, waiting, scope="rule")) == ["DecisionRecorded"]
    assert refusal(decide(made, waiting, scope="rule")).code == "already_voted"
    assert names(decide(made, waiting, actor=RUDI, scope="rule"))[-1] == "RuleAsked"


def test_decide_for_a_rule_on_a_sensitive_argument_is_refused() -> None:
    made = world([rule("all", "wait", "hold")])
    made.definitions = published(
        made.definitions, tools=[{"name": "wait", "annotations": {"readOnlyHint": True}}]
    )
    sealed = {"key": {"handle": "sec_1", "commitment": "00"}}
    refused = refusal(decide(made, pay(made, "first", sealed, "wait"), scope="rule"))
    assert refused.code == "invalid"
    assert "sensitive" in refused.detail


def test_decide_for_a_rule_of_a_call_that_no_rule_holds_is_refused() -> None:
    made = world([])
    assert refusal(decide(made, pay(made, "first"), scope="rule")).code == "invalid"


@pytest.mark.parametrize("scope", ["rule", "execution"])
@pytest.mark.parametrize(
    ("tools", "condition", "said"),
    [
        ([], "", "the tool ship is not published"),
        ([SHIP], "", "a call of high risk is never remembered"),
        ([MILD_SHIP], "args.nothing > 1", "the policy failed on this call"),
        ([MILD_SHIP], "", ""),
    ],
)
def test_hold_offers_to_remember_only_what_is_taken(
    tools: list[dict[str, Any]], condition: str, said: str, scope: str
) -> None:
    more = {"when": condition} if condition else {}
    made = World()
    rules = [{"id": "payments", "match": {"tools": ["ship"]}, "then": "hold", **more}]
    made.definitions = published(made.definitions, rules, tools)
    made.ask(k.StartExecution(agent="bot"))
    waiting = pay(made, "first", GB, "ship")

    answer = decide(made, waiting, scope=scope)

    assert (the(waiting, "HoldOpened").remember is None) == bool(said)
    if said:
        assert (refusal(answer).code, said in refusal(answer).detail) == ("invalid", True)
        assert "decide once" in refusal(answer).detail
        assert names(decide(made, waiting)) == ["DecisionRecorded", "ToolCallReleased"]
    else:
        assert names(answer)[0] == "DecisionRecorded"


def test_decide_for_a_rule_of_a_decided_hold_of_an_unpublished_tool_is_told_as_decided() -> None:
    made = World()
    made.definitions = published(made.definitions, [rule("payments", "ship", "hold")])
    made.ask(k.StartExecution(agent="bot"))
    waiting = pay(made, "first", GB, "ship")
    decide(made, waiting)
    assert refusal(decide(made, waiting, scope="rule")).code == "already_decided"


def test_decide_for_a_rule_of_an_unknown_outcome_is_refused() -> None:
    made = world()
    release = the(decide(made, pay(made, "first")), "ToolCallReleased")
    made.ask(k.ConsumeGrant(call_id="first", digest=release.digest, attempt_id="a"))
    unknown = made.ask(k.ReportResult(call_id="first", attempt_id="a", outcome="unknown"))
    assert refusal(decide(made, unknown, scope="rule")).code == "invalid"


def test_unknown_outcome_of_what_a_rule_released_asks_those_whom_the_policy_asks() -> None:
    free = {"max_uses": "unlimited", "four_eyes": False}
    made = world([rule("transfers", "transfer", "hold", roles=["cfo"], remember=free)])
    first = pay(made, "first", GB, "transfer")
    asked = the(decide(made, first, actor=CLARA, scope="rule", remember={"uses": None}), "RuleAsked")
    make(made, asked)
    release = the(pay(made, "second", GB, "transfer"), "ToolCallReleased")
    made.ask(k.ConsumeGrant(call_id="second", digest=release.digest, attempt_id="a"))
    unknown = made.ask(k.ReportResult(call_id="second", attempt_id="a", outcome="unknown"))
    assert the(unknown, "HoldOpened").roles == ("cfo",)


def test_decide_for_a_rule_of_a_call_of_high_risk_is_refused() -> None:
    made = world()
    made.definitions = published(made.definitions, tools=[{"name": "pay", "inputSchema": PAY_SCHEMA}])
    refused = refusal(decide(made, pay(made, "first"), scope="rule"))
    assert refused.code == "invalid"
    assert "high risk" in refused.detail


@pytest.mark.parametrize("scope", ["rule", "execution"])
def test_decide_for_what_is_too_deep_to_be_remembered_is_refused_and_once_is_taken(scope: str) -> None:
    deepest = "[" * (JSON_MAX_DEPTH - 1) + "]" * (JSON_MAX_DEPTH - 1)
    made = world()
    waiting = pay(made, "first", {"amount": 1, "nested": json.loads(deepest)})
    seen = {"view_digest": the(waiting, "HoldOpened").view_digest}

    refused = refusal(decide(made, waiting, scope=scope, **seen))

    assert (refused.code, "decide once" in refused.detail) == ("invalid", True)
    assert names(decide(made, waiting, **seen)) == ["DecisionRecorded", "ToolCallReleased"]


def test_policy_that_reads_memory_allows_what_was_approved_and_nothing_after_its_expiry() -> None:
    made = unlimited()
    ruled(made)
    remembered = {**rule("known", "pay", "allow"), "when": "args.to in memory.approved('to')"}
    made.definitions = published(made.definitions, [remembered, *plain(max_uses="unlimited")])

    events = pay(made, "second", {"amount": 7, "to": "GB29"})
    assert the(events, "ToolCallReleased").released_by == "policy"
    assert "HoldOpened" in names(pay(made, "third", {"amount": 7, "to": "GB30"}))
    made.later(DAY_S)
    assert "HoldOpened" in names(pay(made, "fourth", {"amount": 7, "to": "GB29"}))


def test_policy_that_reads_memory_forgets_a_contradicted_rule_at_once() -> None:
    made = unlimited()
    ruled(made)
    remembered = {**rule("known", "pay", "allow"), "when": "args.to in memory.approved('to')"}
    made.definitions = published(made.definitions, [remembered, *plain(max_uses="unlimited")])
    pay(made, "second")
    assert "RuleContradicted" in names(made.ask(k.RevokeGrant(call_id="second"), RITA))
    assert "HoldOpened" in names(pay(made, "third"))


@pytest.mark.parametrize("change", [{"disabled": True}, {"roles": ["analyst"]}], ids=["disabled", "role"])
def test_judge_by_what_a_maker_approved_who_may_no_more_is_not_allowed(change: dict[str, Any]) -> None:
    remembered = {**rule("known", "pay", "allow"), "when": "args.to in memory.approved('to')"}
    made = unlimited()
    ruled(made)
    made.definitions = published(made.definitions, [remembered, *plain(max_uses="unlimited")])
    rita = {"principal": "rita-r", "subjects": ["rita"], "roles": ["reviewer"]}
    made.definitions = with_people(made.definitions, rita)
    assert the(pay(made, "second"), "ToolCallReleased").released_by == "policy"

    made.definitions = with_people(made.definitions, {**rita, **change})

    assert names(pay(made, "third"))[-1] == "HoldOpened"


@pytest.mark.parametrize(
    "today", [{"scopes": ["execution"]}, {"four_eyes": True}], ids=["scope", "four-eyes"]
)
def test_propose_under_a_policy_that_lets_no_such_rule_be_made_any_more_asks_a_person(
    today: dict[str, Any],
) -> None:
    made = unlimited()
    ruled(made)
    release = the(pay(made, "second"), "ToolCallReleased")

    made.definitions = published(made.definitions, plain(max_uses="unlimited", **today))

    assert names(pay(made, "third"))[-1] == "HoldOpened"
    consume = k.ConsumeGrant(call_id="second", digest=release.digest, attempt_id="a")
    assert names(made.ask(consume))[1:] == ["HoldOpened", "CommandRefused"]


def test_propose_what_a_run_remembers_that_the_policy_lets_no_run_remember_any_more_asks_a_person() -> None:
    made = unlimited()
    decide(made, pay(made, "first"), scope="execution")
    assert names(pay(made, "second"))[-1] == "ToolCallReleased"

    made.definitions = published(made.definitions, plain(scopes=["rule"]))

    assert names(pay(made, "third"))[-1] == "HoldOpened"


def test_decide_for_a_rule_that_the_approved_call_would_not_pass_is_refused_with_that_reason() -> None:
    made = world()
    tests = {"arguments": {"amount": {"at_most": 99}}}

    refused = refusal(decide(made, pay(made, "first"), scope="rule", remember=tests))

    assert refused.detail == "the approved call itself does not pass these tests"
