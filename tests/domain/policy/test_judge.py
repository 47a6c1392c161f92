from typing import Any

import pytest

from services.domain.policy import Bindings, CompiledExpression, PolicySet, PolicyTimeout, judge
from tests.domain.policy.builders import NOW_MS, READ, WRITE, call, policies, rules

TWO = """
  - {id: big, match: {tools: [send_money]}, when: args.amount > 500.0, then: hold,
     hold: {roles: [treasurer], exclude_requester: true, timeout_seconds: 600, question: "Pay {{args.amount}}?",
            escalate: {after_seconds: 300, roles: [cfo]}, on_reject: halt}}
  - {id: small, match: {tools: [send_money]}, then: allow}
"""


def broken(_expression: CompiledExpression, _bindings: Bindings) -> bool:
    raise RuntimeError("a bug in the evaluator")


def late(_expression: CompiledExpression, _bindings: Bindings) -> bool:
    raise PolicyTimeout("too late")


def test_judge_matched_rule_is_cited_with_its_version() -> None:
    verdict = judge(rules(TWO), call(arguments={"amount": 600}), NOW_MS)

    assert (verdict.effect, verdict.rules, verdict.policy_version) == ("hold", ("p@1/big",), "p@1")
    assert verdict.reason == "matched"


def test_judge_hold_terms_come_from_the_rule() -> None:
    hold = judge(rules(TWO), call(arguments={"amount": 600}), NOW_MS).hold

    assert hold is not None
    assert (hold.kind, hold.roles, hold.quorum, hold.exclude_requester) == (
        "permission",
        ("treasurer",),
        1,
        True,
    )
    assert (hold.timeout_ms, hold.escalate_after_ms, hold.escalate_roles) == (600_000, 300_000, ("cfo",))
    assert (hold.on_timeout, hold.on_reject, hold.question) == ("deny", "halt", "Pay 600?")


def test_judge_first_matching_rule_in_file_order_decides() -> None:
    verdict = judge(rules(TWO), call(arguments={"amount": 400}), NOW_MS)

    assert (verdict.effect, verdict.rules, verdict.hold) == ("allow", ("p@1/small",), None)


def test_judge_no_policy_is_a_hold() -> None:
    verdict = judge(PolicySet(), call(), NOW_MS)

    assert (verdict.effect, verdict.reason, verdict.policy_version, verdict.rules) == (
        "hold",
        "no_policy",
        "",
        (),
    )
    assert verdict.hold is not None
    assert verdict.hold.timeout_ms == 900_000


def test_judge_no_match_is_a_hold() -> None:
    verdict = judge(rules("  - {id: a, match: {tools: [other]}, then: allow}"), call(), NOW_MS)

    assert (verdict.effect, verdict.reason, verdict.rules) == ("hold", "no_match", ())


def test_judge_defaults_describe_a_hold_that_no_rule_describes() -> None:
    text = "policy: p\ndefaults: {on_timeout: {default: reject}, timeout_seconds: 1.5}"
    hold = judge(policies(text), call(), NOW_MS).hold

    assert hold is not None
    assert (hold.timeout_ms, hold.on_timeout, hold.on_timeout_default) == (1500, "default", '"reject"')


@pytest.mark.parametrize(
    ("written", "word", "answer"),
    [
        ("deny", "deny", None),
        ("halt", "halt", None),
        ("wait", "wait", None),
        ("escalate, escalate: {after_seconds: 1, roles: [x]}", "escalate", None),
        ("{default: Ask again tomorrow}", "default", '"Ask again tomorrow"'),
    ],
)
def test_judge_every_on_timeout_reaches_the_hold(written: str, word: str, answer: Any) -> None:
    verdict = judge(rules(f"  - {{id: a, then: hold, hold: {{on_timeout: {written}}}}}"), call(), NOW_MS)

    assert verdict.hold is not None
    assert (verdict.hold.on_timeout, verdict.hold.on_timeout_default) == (word, answer)


@pytest.mark.parametrize(("word", "effect"), [("hold", "hold"), ("deny", "deny")])
def test_judge_unknown_tool_gets_the_default_whatever_the_rule_allows(word: str, effect: str) -> None:
    text = f"policy: p\ndefaults: {{unknown_tool: {word}}}\nrules: [{{id: a, then: allow}}]"
    verdict = judge(policies(text), call(tool_definition=None), NOW_MS)

    assert (verdict.effect, verdict.reason, verdict.rules) == (effect, "unknown_tool", ("p@1/a",))
    assert verdict.risk.level == "high"


def test_judge_unknown_tool_that_a_rule_denies_is_denied() -> None:
    verdict = judge(rules("  - {id: a, then: deny}"), call(tool_definition=None), NOW_MS)

    assert (verdict.effect, verdict.reason) == ("deny", "unknown_tool")


@pytest.mark.parametrize(("word", "effect"), [("hold", "hold"), ("deny", "deny")])
def test_judge_condition_that_fails_gets_the_default(word: str, effect: str) -> None:
    text = f"policy: p\ndefaults: {{error: {word}}}\nrules: [{{id: a, when: args.x == 1, then: allow}}]"
    verdict = judge(policies(text), call(), NOW_MS)

    assert (verdict.effect, verdict.reason, verdict.rules) == (effect, "policy_error", ("p@1/a",))
    assert "no field 'x'" in verdict.detail


@pytest.mark.parametrize(("evaluate", "reason"), [(broken, "policy_error"), (late, "policy_timeout")])
def test_judge_evaluator_that_raises_never_allows(evaluate: Any, reason: str) -> None:
    verdict = judge(rules(TWO), call(arguments={"amount": 1}), NOW_MS, evaluate)

    assert (verdict.effect, verdict.reason) == ("hold", reason)


@pytest.mark.parametrize("answer", [1, "yes", [True], None])
def test_judge_evaluator_that_answers_otherwise_than_true_matches_nothing(answer: Any) -> None:
    verdict = judge(
        rules("  - {id: a, when: args.x == 1, then: allow}"), call(), NOW_MS, lambda _e, _b: answer
    )

    assert (verdict.effect, verdict.reason) == ("hold", "no_match")


def test_judge_failing_on_purpose_does_not_evade_the_rule_behind() -> None:
    text = """
  - {id: small, match: {tools: [send_money]}, when: args.amount <= 50.0, then: allow}
  - {id: money, match: {tools: [send_money]}, then: hold, hold: {roles: [treasurer]}}
"""
    verdict = judge(rules(text), call(arguments={"amount": "fifty"}), NOW_MS)

    assert (verdict.effect, verdict.reason, verdict.rules) == (
        "hold",
        "policy_error",
        ("p@1/small", "p@1/money"),
    )
    assert verdict.hold is not None
    assert verdict.hold.roles == ("treasurer",)


def test_judge_failing_rule_keeps_its_own_reviewers() -> None:
    verdict = judge(rules(TWO), call(arguments={"amount": "much"}), NOW_MS)

    assert verdict.rules == ("p@1/big",)
    assert verdict.hold is not None
    assert verdict.hold.roles == ("treasurer",)


def test_judge_failure_before_a_deny_is_denied() -> None:
    text = """
  - {id: a, when: args.x == 1, then: allow}
  - {id: b, then: deny}
"""
    assert judge(rules(text), call(), NOW_MS).effect == "deny"


def test_judge_after_a_timeout_waits_no_second_time() -> None:
    text = """
  - {id: a, when: args.x == 1, then: allow}
  - {id: b, when: args.y == 1, then: allow}
  - {id: c, then: hold, hold: {roles: [treasurer]}}
"""
    asked: list[str] = []

    def evaluate(expression: CompiledExpression, bindings: Bindings) -> bool:
        asked.append(expression.source)
        return late(expression, bindings)

    verdict = judge(rules(text), call(), NOW_MS, evaluate)
    assert asked == ["args.x == 1"]
    assert verdict.hold is not None
    assert verdict.hold.roles == ("treasurer",)


def test_judge_annotations_are_anded_and_published() -> None:
    text = "  - {id: a, match: {annotations: {readOnlyHint: true, openWorldHint: false}}, then: allow}"
    closed = {"annotations": {"readOnlyHint": True, "openWorldHint": False}}

    assert judge(rules(text), call(tool_definition=closed), NOW_MS).effect == "allow"
    assert judge(rules(text), call(tool_definition=READ), NOW_MS).effect == "hold"


def test_judge_time_of_the_log_is_now() -> None:
    text = "  - {id: a, when: \"now < timestamp('2026-01-06T00:00:00Z')\", then: allow}"

    assert judge(rules(text), call(), NOW_MS).effect == "allow"
    assert judge(rules(text), call(), NOW_MS + 86_400_000).reason == "no_match"
    assert judge(rules(text), call(), 10**30).reason == "policy_error"


def test_judge_trust_is_passed_through_and_its_absence_is_a_hold() -> None:
    text = "  - {id: a, when: trust.successes >= 10.0, then: allow}"
    trusted = judge(rules(text), call(trust={"successes": 12}), NOW_MS)
    unknown = judge(rules(text), call(), NOW_MS)

    assert (trusted.effect, trusted.trust) == ("allow", {"successes": 12})
    assert (unknown.effect, unknown.reason, unknown.trust) == ("hold", "policy_error", None)


def test_judge_same_tool_name_of_another_version_is_not_confused() -> None:
    text = "  - {id: a, match: {annotations: {readOnlyHint: true}}, then: allow}"
    old = call(tool_definition=READ, tool_version="1" * 64)
    new = call(tool_definition=WRITE, tool_version="2" * 64)

    assert [judge(rules(text), one, NOW_MS).effect for one in (old, new, old)] == ["allow", "hold", "allow"]


def test_judge_real_path_uses_the_injected_resolver() -> None:
    text = "  - {id: a, when: real_path(args.path).startsWith('/work/'), then: allow}"
    there = call(arguments={"path": "/work/link"})

    assert judge(rules(text), there, NOW_MS).effect == "allow"
    assert judge(rules(text), there, NOW_MS, resolve_path=lambda _path: "/etc/passwd").effect == "hold"


def test_judge_resolver_that_raises_never_allows() -> None:
    def loop(_path: str) -> str:
        raise OSError("too many levels of symbolic links")

    text = "  - {id: a, when: real_path(args.path).startsWith('/work/') || true, then: allow}"
    verdict = judge(rules(text), call(arguments={"path": "/work/x"}), NOW_MS, resolve_path=loop)

    assert (verdict.effect, verdict.reason) == ("hold", "policy_error")


def test_judge_facts_that_cannot_be_read_are_held_at_high_risk() -> None:
    verdict = judge(rules("  - {id: a, then: allow}"), call(tool_definition=5), NOW_MS)

    assert (verdict.effect, verdict.reason, verdict.risk.level) == ("hold", "policy_error", "high")
