"""Whom a hold needs where conditions fail, or several rules ask."""

import pytest

from schemas.requirement import ANY_REVIEWER, Requirement
from services.domain.policy import PolicyTimeout, judge
from services.domain.policy.verdict import HoldTerms
from tests.domain.policy.builders import NOW_MS, READ, WRITE, call, rules

CREDITS = """
  - {id: small-credit, when: "args.amount <= 20.0 && !edited", then: allow}
  - {id: credit, when: "args.amount > 20.0 && args.amount <= 100.0", then: hold, hold: {roles: [support-lead]}}
  - {id: large, when: "args.amount > 100.0", then: hold,
     hold: {roles: [treasurer], quorum: 2, exclude_requester: true, excluded: [mallory], timeout_seconds: 60,
            escalate: {after_seconds: 30, roles: [cfo]}, on_reject: halt, on_timeout: halt}}
  - {id: rest, then: hold, hold: {reviewers: [rita], timeout_seconds: 600}}
"""


def terms(text: str, arguments: dict[str, object]) -> HoldTerms:
    """The terms of a call that must be held."""
    verdict = judge(rules(text), call(arguments=arguments), NOW_MS)
    assert verdict.hold is not None, verdict
    return verdict.hold


def test_case_38_condition_that_fails_in_two_rules_needs_the_second_ones_reviewers() -> None:
    two = "\n".join(CREDITS.splitlines()[:3])

    hold = terms(two, {"amount": "twenty"})

    assert (hold.roles, hold.quorum, hold.requirements) == (("support-lead",), 1, ())


def test_case_38_condition_that_fails_in_all_rules_needs_every_reviewer_named() -> None:
    verdict = judge(rules(CREDITS), call(arguments={"amount": "twenty"}), NOW_MS)

    hold = verdict.hold
    assert hold is not None
    assert verdict.rules == ("p@1/small-credit", "p@1/credit", "p@1/large", "p@1/rest")
    assert verdict.reason == "policy_error"
    assert (hold.roles, hold.reviewers, hold.quorum) == (("support-lead", "treasurer"), ("rita",), 2)
    assert hold.requirements == (
        Requirement(("p@1/credit",), ("support-lead",), (), 1),
        Requirement(("p@1/large",), ("treasurer",), (), 2, ("cfo",)),
        Requirement(("p@1/rest",), (), ("rita",), 1),
    )
    assert (hold.exclude_requester, hold.excluded, hold.timeout_ms) == (True, ("mallory",), 60_000)
    assert (hold.on_timeout, hold.on_reject, hold.escalate_roles) == ("halt", "halt", ("cfo",))
    assert hold.remember is None


def test_case_38_condition_that_fails_in_one_rule_keeps_those_of_the_rule_that_matches() -> None:
    text = """
  - {id: a, when: "args.to == 'x'", then: hold, hold: {roles: [auditor]}}
  - {id: b, when: "args.amount > 1.0", then: hold, hold: {roles: [treasurer]}}
  - {id: c, then: hold, hold: {roles: [nobody-asks]}}
"""
    hold = terms(text, {"amount": 2})

    assert [one.roles for one in hold.requirements] == [("auditor",), ("treasurer",)]


def test_case_38_condition_that_fails_before_a_rule_that_allows_keeps_its_people() -> None:
    text = """
  - {id: a, when: "args.to == 'x'", then: hold, hold: {roles: [auditor]}}
  - {id: b, when: "args.for == 'x'", then: hold, hold: {roles: [auditor], quorum: 3}}
  - {id: c, then: allow}
"""
    hold = terms(text, {})

    assert (hold.roles, hold.quorum, hold.requirements) == (("auditor",), 3, ())


def test_judge_a_rule_that_names_nobody_asks_any_reviewer_beside_another_rules_people() -> None:
    text = """
  - {id: a, when: "args.to == 'x'", then: hold, hold: {quorum: 3}}
  - {id: b, then: hold, hold: {roles: [treasurer]}}
"""
    hold = terms(text, {})

    assert (set(hold.roles), hold.quorum) == ({"reviewer", "operator", "admin", "treasurer"}, 3)
    assert hold.requirements == (
        Requirement(("p@1/a",), ANY_REVIEWER, (), 3),
        Requirement(("p@1/b",), ("treasurer",), (), 1),
    )


@pytest.mark.parametrize("named", ["reviewer", "operator, admin"])
def test_judge_a_rule_that_names_nobody_asks_nothing_more_where_another_rules_people_are_reviewers(
    named: str,
) -> None:
    text = f"""
  - {{id: a, when: "args.to == 'x'", then: hold}}
  - {{id: b, then: hold, hold: {{roles: [{named}]}}}}
"""
    hold = terms(text, {})

    assert (hold.roles, hold.quorum, hold.requirements) == (tuple(named.split(", ")), 1, ())


def test_judge_a_rule_whose_people_escalate_to_others_than_reviewers_leaves_any_reviewer_asked() -> None:
    text = """
  - {id: a, when: "args.to == 'x'", then: hold}
  - {id: b, then: hold, hold: {roles: [operator], escalate: {after_seconds: 30, roles: [cfo]}}}
"""
    assert [one.roles for one in terms(text, {}).requirements] == [ANY_REVIEWER, ("operator",)]


def test_case_38_conditions_behind_a_timeout_count_as_failed() -> None:
    def late(_expression: object, _bindings: object) -> bool:
        raise PolicyTimeout("too late")

    verdict = judge(rules(CREDITS), call(arguments={"amount": 1}), NOW_MS, late)

    assert verdict.reason == "policy_timeout"
    assert verdict.hold is not None
    assert [one.rules for one in verdict.hold.requirements] == [
        ("p@1/credit",),
        ("p@1/large",),
        ("p@1/rest",),
    ]


@pytest.mark.parametrize("claimed", [{}, {"destructiveHint": True}])
def test_judge_people_whom_a_claim_calls_for_are_needed_beside_the_others(claimed: dict[str, bool]) -> None:
    text = """
  - {id: harm, match: {annotations: {destructiveHint: true}}, then: hold, hold: {roles: [treasurer]}}
  - {id: rest, then: hold, hold: {roles: [lead]}}
"""
    tool = {"annotations": {**WRITE["annotations"], "destructiveHint": False}}
    verdict = judge(rules(text), call(tool_definition=tool, claimed_annotations=claimed), NOW_MS)

    assert verdict.hold is not None
    expected = [("lead",), ("treasurer",)] if claimed else []
    assert [one.roles for one in verdict.hold.requirements] == expected


def test_judge_a_reading_tool_is_still_allowed_by_the_rule_that_matches() -> None:
    text = "  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: allow}"

    assert judge(rules(text), call(tool_definition=READ), NOW_MS).effect == "allow"
