"""How policies shadow each other: which rules never apply, for whom, and why."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.domain.policy.patterns import matcher, overlap
from services.domain.policy.scopes import ScopeFacts
from services.domain.policy.shadowing import WARNINGS_MAX, Standing, shadows
from tests.domain.policy.builders import policies
from tests.policy_documents import parse_policy

INTERNS = """
policy: interns
scope: {agent: "intern-*"}
rules:
  - {id: reads, match: {tools: [read]}, then: allow}
  - {id: deny-writes, match: {tools: ["write_*"]}, then: deny}
"""
SUPPORT = """
policy: support
scope: {agent: intern-joe}
rules:
  - {id: reading, match: {tools: [read]}, then: allow}
  - {id: credits, match: {tools: [credit]}, then: hold}
"""


def standing(text: str, version: int = 1, project: str = "*") -> Standing:
    return Standing(parse_policy(text), version, project)


def said(one: str, *others: str) -> list[str]:
    return [problem.message for problem in shadows(standing(one), map(standing, others))]


def test_policy_that_names_the_agent_wins_whole_and_the_lost_rules_are_named() -> None:
    lost = "rule deny-writes of `interns` never applies to intern-joe"
    wanted = f"`support` names the agent and wins as a whole: {lost}"

    assert said(SUPPORT, INTERNS) == [wanted]
    assert said(INTERNS, SUPPORT) == [wanted]
    # As it is judged.
    facts = ScopeFacts("acme", "web", "", "", "intern-joe")
    selected = policies(SUPPORT, INTERNS).select(facts)
    assert selected is not None
    assert selected.name == "support"


def test_rules_that_both_have_are_not_lost() -> None:
    both = SUPPORT + "  - {id: own-name, match: {tools: ['write_*']}, then: deny}\n"

    assert said(both, INTERNS) == []


def test_several_lost_rules_are_named_the_strictest_first_and_cut() -> None:
    rules = "".join(f"  - {{id: a{n}, match: {{tools: [t{n}]}}, then: allow}}\n" for n in range(9))
    many = f"policy: many\nrules:\n{rules}  - {{id: no, match: {{tools: [x]}}, then: deny}}\n"

    lost = "rules no, a0, a1, a2, a3 and 5 more of `many` never apply to intern-joe"
    assert said(SUPPORT, many) == [f"`support` names the agent and wins as a whole: {lost}"]


@pytest.mark.parametrize(
    ("winner", "loser", "why", "whom"),
    [
        (
            "{agent: 'intern-j*'}",
            "{agent: 'intern-*'}",
            "names the agent more exactly (intern-j*)",
            " to agents intern-j*",
        ),
        ("{user: ann}", "{user: '*'}", "names the user", " to user ann"),
        ("{agent: bot, user: ann}", "{user: 'a*'}", "names the agent", " to agent bot, user ann"),
        ("{workspace: 'w*'}", "{project: web}", "names the workspace more exactly (w*)", " to workspaces w*"),
    ],
)
def test_warning_says_why_one_wins_and_for_whom(winner: str, loser: str, why: str, whom: str) -> None:
    rules = "rules: [{id: r, then: deny, match: {tools: [x]}}]"
    found = said(f"policy: w\nscope: {winner}", f"policy: l\nscope: {loser}\n{rules}")

    assert found == [f"`w` {why} and wins as a whole: rule r of `l` never applies{whom}"]


def test_equal_scopes_leave_the_loser_nothing() -> None:
    text = "policy: {name}\nrules: [{{id: {name}-r, match: {{tools: [{name}]}}, then: deny}}]"
    one, other = (standing(text.format(name=name), version) for name, version in (("a", 1), ("b", 2)))

    assert [problem.message for problem in shadows(one, [other])] == [
        "`b` has the same scope, the higher version (2) and wins as a whole: rule a-r of `a` never applies"
    ]


def test_project_and_tenant_shadow_each_other_only_in_that_project() -> None:
    own = standing("policy: own\nrules: [{id: r, then: allow}]", project="web")
    tenant = standing("policy: all\nrules: [{id: no, then: deny}]")
    other = standing("policy: other\nrules: [{id: r2, then: allow}]", project="shop")

    assert [problem.message for problem in shadows(own, [tenant, other])] == [
        "`web/own` names the project and wins as a whole: rule no of `all` never applies to project web"
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [("{agent: a}", "{agent: b}"), ("{agent: 'a*'}", "{agent: 'b*'}"), ("{agent: x, user: u}", "{user: v}")],
)
def test_policies_that_fit_no_call_in_common_shadow_nothing(one: str, other: str) -> None:
    rules = "rules: [{id: r, then: deny}]"

    assert said(f"policy: one\nscope: {one}\n{rules}", f"policy: other\nscope: {other}\nrules: []") == []


def test_earlier_version_of_the_same_policy_is_passed_over() -> None:
    assert said(SUPPORT, SUPPORT.replace("credit", "other")) == []


def test_very_many_warnings_are_cut() -> None:
    others = [standing(INTERNS.replace("interns", f"interns-{n}")) for n in range(WARNINGS_MAX + 7)]
    found = shadows(standing(SUPPORT), others)

    assert len(found) == WARNINGS_MAX + 1
    assert found[-1].message == "7 more policies rank before or after this one"


NAMES = ["".join(letters) for size in range(6) for letters in itertools.product("ab", repeat=size)]


@settings(max_examples=300, deadline=None)
@given(*[st.text("ab*?", min_size=1, max_size=5)] * 2)
def test_patterns_overlap_exactly_where_a_name_fits_both(one: str, other: str) -> None:
    # No shortest common name of two patterns of five parts is longer than five letters and five more.
    common = any(matcher(one)(name) and matcher(other)(name) for name in NAMES)

    assert overlap(one, other) is overlap(other, one)
    assert overlap(one, other) or not common
    if not overlap(one, other):
        return
    longer = ("".join(letters) for size in range(6, 11) for letters in itertools.product("ab", repeat=size))
    assert common or any(matcher(one)(name) and matcher(other)(name) for name in longer)


def test_patterns_with_classes_overlap_where_a_letter_is_in_them() -> None:
    assert overlap("[ab]x", "bx")
    assert not overlap("[ab]x*", "c*")
    assert not overlap("[!a]*", "a*")
