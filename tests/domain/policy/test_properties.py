"""What must hold of every policy and every facts."""

import math
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.policy_document import PolicyDocument, policy_from_value
from services.domain.policy import (
    Bindings,
    CallFacts,
    CompiledExpression,
    Evaluator,
    PolicySet,
    PolicyTimeout,
    Verdict,
    evaluate_in_process,
    judge,
)
from services.domain.policy.annotations import HINTS
from services.domain.policy.verdict import STRICTNESS
from tests.domain.policy.builders import NOW_MS, call

TOOLS = ["send_money", "get_x", "run_sql", "fetch"]
CONDITIONS = [
    "args.amount > 500.0",
    "has(args.amount) && args.amount > 1",
    "url_host(args.url) == 'a.com'",
    "sql_kind(args.sql) == 'select'",
    "real_path(args.path).startsWith('/work/')",
    "args.list.all(x, args.list.exists(y, y == x))",
    "risk.score < 0.5",
    "trust.successes > 5.0",
    "tool.annotations.openWorldHint",
    "size(args) == 0",
    "user == 'ann' || args.amount == 1",
]
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["http://a.com", "select 1", "/work/x", "\ud800", "\u202e"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)
hints = st.dictionaries(st.sampled_from(HINTS), st.booleans(), max_size=4)
arguments = st.dictionaries(
    st.sampled_from(["amount", "url", "sql", "path", "list", "x"]), json_values, max_size=5
)
rule_bodies = st.fixed_dictionaries(
    {"then": st.sampled_from(["allow", "hold", "deny"])},
    optional={
        "match": st.fixed_dictionaries(
            {"tools": st.lists(st.sampled_from([*TOOLS, "*", "get_*"]), min_size=1)}
        )
        | st.fixed_dictionaries({"annotations": hints.filter(bool)}),
        "when": st.sampled_from(CONDITIONS),
    },
)
documents = st.lists(rule_bodies, max_size=6).map(
    lambda bodies: policy_from_value(
        {"policy": "p", "rules": [{"id": f"r{number}", **body} for number, body in enumerate(bodies)]}
    )
)
definitions = st.none() | st.fixed_dictionaries({"annotations": hints})
calls = st.builds(
    CallFacts,
    tenant=st.just("acme"),
    project=st.just("web"),
    tool=st.sampled_from(TOOLS),
    agent=st.just("bot"),
    user=st.sampled_from(["", "ann"]),
    tool_definition=definitions,
    claimed_annotations=st.dictionaries(st.sampled_from([*HINTS, "approved"]), json_values, max_size=4),
    arguments=arguments,
    context=json_values,
    trust=st.none() | st.just({"successes": 9}),
)
quick = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def published(document: PolicyDocument) -> PolicySet:
    return PolicySet().with_policy("acme", "p", 1, document)


def raising(error: Exception) -> Evaluator:
    def evaluate(_expression: CompiledExpression, _bindings: Bindings) -> bool:
        raise error

    return evaluate


@quick
@given(documents, calls)
def test_judge_any_call_gets_a_whole_verdict(document: PolicyDocument, facts: CallFacts) -> None:
    verdict = judge(published(document), facts, NOW_MS)

    assert verdict.effect in STRICTNESS
    assert (verdict.hold is not None) == (verdict.effect == "hold")
    assert 0 <= verdict.risk.score <= 1
    assert 0 <= verdict.risk.required <= 1
    if verdict.effect == "allow":
        assert verdict.reason == "matched"
        assert facts.tool_definition is not None
        assert document.rules[int(verdict.rules[0].rsplit("r", 1)[1])].then == "allow"


@quick
@given(
    documents, calls, st.sampled_from([RuntimeError("x"), PolicyTimeout("x"), MemoryError(), KeyError("x")])
)
def test_judge_evaluator_that_always_raises_allows_only_by_rules_before_it(
    document: PolicyDocument, facts: CallFacts, error: Exception
) -> None:
    verdict = judge(published(document), facts, NOW_MS, raising(error))

    if verdict.effect == "allow":
        assert document.rules[int(verdict.rules[0].rsplit("r", 1)[1])].when is None


@quick
@given(documents, calls, st.integers(0, 5))
def test_judge_one_failure_never_makes_the_verdict_looser(
    document: PolicyDocument, facts: CallFacts, failing: int
) -> None:
    count = 0

    def evaluate(expression: CompiledExpression, bindings: Bindings) -> bool:
        nonlocal count
        count += 1
        if count == failing + 1:
            raise RuntimeError("a bug")
        return evaluate_in_process(expression, bindings)

    verdict = judge(published(document), facts, NOW_MS, evaluate)
    if count > failing:
        assert verdict.effect != "allow"


@quick
@given(documents, calls)
def test_judge_claims_never_make_the_verdict_looser(document: PolicyDocument, facts: CallFacts) -> None:
    policies = published(document)
    claimed = judge(policies, facts, NOW_MS)
    silent = judge(policies, msgspec.structs.replace(facts, claimed_annotations={}), NOW_MS)

    assert STRICTNESS[claimed.effect] >= STRICTNESS[silent.effect]
    assert claimed.risk.score >= silent.risk.score
    assert claimed.risk.required >= silent.risk.required


@quick
@given(documents, calls)
def test_judge_unknown_tool_is_never_allowed(document: PolicyDocument, facts: CallFacts) -> None:
    assert (
        judge(published(document), msgspec.structs.replace(facts, tool_definition=None), NOW_MS).effect
        != "allow"
    )


@quick
@given(documents, calls)
def test_judge_another_tenants_policy_changes_nothing(document: PolicyDocument, facts: CallFacts) -> None:
    alone = judge(PolicySet(), facts, NOW_MS)
    beside = judge(PolicySet().with_policy("globex", "p", 1, document), facts, NOW_MS)

    assert _comparable(alone) == _comparable(beside)


@quick
@given(documents, calls)
def test_judge_same_question_gets_the_same_answer(document: PolicyDocument, facts: CallFacts) -> None:
    policies = published(document)

    assert _comparable(judge(policies, facts, NOW_MS)) == _comparable(judge(policies, facts, NOW_MS))


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=2))
def test_evaluate_comparison_agrees_with_python(pair: list[float]) -> None:
    policies = published(
        policy_from_value(
            {"policy": "p", "rules": [{"id": "r0", "when": "args.a > args.b", "then": "allow"}]}
        )
    )
    verdict = judge(policies, call("get_x", {"a": pair[0], "b": pair[1]}), NOW_MS)

    assert (verdict.effect == "allow") == (pair[0] > pair[1] and all(map(math.isfinite, pair)))


def _comparable(verdict: Verdict) -> tuple[Any, ...]:
    return (verdict.effect, verdict.rules, verdict.reason, verdict.detail, verdict.risk, verdict.hold)
