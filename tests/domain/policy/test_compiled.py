import pytest

from schemas.policy_problems import PolicyRefused
from services.domain.policy import PolicySet, compile_policy
from services.domain.policy.scopes import ScopeFacts
from tests.domain.policy.builders import policies, rules
from tests.policy_documents import parse_policy

FACTS = ScopeFacts("acme", "web", "", "", "bot")


def test_compile_policy_every_expression_that_does_not_compile_is_named() -> None:
    text = """
policy: p
rules:
  - {id: a, when: "arg.x > 1", then: allow}
  - {id: b, when: "args.x in memory.denied('y')", then: allow}
  - {id: c, then: hold, hold: {question: "Pay {{arg.x}}?"}}
  - {id: d, when: "args.x > 1", then: allow}
"""
    with pytest.raises(PolicyRefused) as error:
        compile_policy(parse_policy(text))

    assert [(problem.path, problem.code) for problem in error.value.problems] == [
        ("rules[0].when", "does_not_compile"),
        ("rules[1].when", "does_not_compile"),
        ("rules[2].hold.question", "does_not_compile"),
    ]


def test_with_policy_newer_version_replaces_and_older_is_ignored() -> None:
    first = PolicySet().with_policy("acme", "p", 2, {"policy": "p"})
    newer = first.with_policy("acme", "p", 3, {"policy": "p"})
    older = newer.with_policy("acme", "p", 1, {"policy": "p"})

    assert [found.label for s in (first, newer, older) if (found := s.select(FACTS))] == ["p@2", "p@3", "p@3"]


def test_with_policy_version_that_is_there_is_ignored() -> None:
    first = PolicySet().with_policy("acme", "p", 2, {"policy": "p"})
    assert first.with_policy("acme", "p", 2, {"policy": "p", "rules": [{"id": "a", "then": "deny"}]}) is first


def test_with_policy_leaves_the_old_set_as_it_was() -> None:
    empty = PolicySet()
    empty.with_policy("acme", "p", 1, {"policy": "p"})

    assert empty.select(FACTS) is None


def test_with_policy_same_name_of_two_tenants_stay_apart() -> None:
    both = policies("policy: p", tenant="acme").with_policy("globex", "p", 7, {"policy": "p"})
    found, other = both.select(FACTS), both.select(FACTS._replace(tenant="globex"))

    assert found is not None
    assert other is not None
    assert (found.label, other.label) == ("p@1", "p@7")


def test_with_policy_other_name_than_the_document_is_refused() -> None:
    with pytest.raises(PolicyRefused, match="the same name"):
        PolicySet().with_policy("acme", "q", 1, {"policy": "p"})


def test_with_policy_scope_of_another_tenant_is_refused() -> None:
    document = {"policy": "p", "scope": {"tenant": "globex"}}

    with pytest.raises(PolicyRefused, match="never applies"):
        PolicySet().with_policy("acme", "p", 1, document)


def test_with_policy_bad_document_is_refused() -> None:
    with pytest.raises(PolicyRefused):
        PolicySet().with_policy("acme", "p", 1, {"policy": "p", "rulez": []})


def test_rules_of_keeps_file_order_and_only_what_fits_the_tool() -> None:
    policy = rules(
        """
  - {id: a, match: {tools: ["send_*", "x"]}, then: deny}
  - {id: b, match: {tools: ["get_*"]}, then: allow}
  - {id: c, then: hold}
"""
    ).select(FACTS)

    assert policy is not None
    assert [rule.rule.id for rule in policy.rules_of("send_money").rules] == ["a", "c"]
    assert [rule.rule.id for rule in policy.rules_of("get_x").rules] == ["b", "c"]
