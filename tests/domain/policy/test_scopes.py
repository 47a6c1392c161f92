import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.policy_document import Scope
from services.domain.policy.patterns import matcher, specificity
from services.domain.policy.scopes import DIMENSIONS, ScopeFacts, applies, select_policy
from tests.domain.policy.builders import policies

FACTS = ScopeFacts(tenant="acme", project="web", workspace="w1", user="ann", agent="billing-bot")


def chosen(*scopes: str, facts: ScopeFacts = FACTS) -> str | None:
    texts = [f"policy: p{index}\nscope: {scope}" for index, scope in enumerate(scopes)]
    policy = policies(*texts).select(facts)
    return policy.name if policy else None


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    list(
        itertools.combinations(
            ["agent: billing-bot", "user: ann", "workspace: w1", "project: web", "tenant: acme"], 2
        )
    ),
)
def test_select_policy_dimensions_count_in_their_order(stronger: str, weaker: str) -> None:
    assert chosen(f"{{{weaker}}}", f"{{{stronger}}}") == "p1"
    assert chosen(f"{{{stronger}}}", f"{{{weaker}}}") == "p0"


def test_select_policy_agent_pattern_beats_every_other_exact_scope() -> None:
    assert chosen("{user: ann, workspace: w1, project: web, tenant: acme}", "{agent: 'b*'}") == "p1"


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        ("'*'", "'b*'"),
        ("'b*'", "'billing-*'"),
        ("'billing-*'", "billing-bot"),
        ("'*'", "'*-bot'"),
        ("'*t'", "'*-bot'"),
    ],
)
def test_select_policy_exact_beats_pattern_beats_star(weaker: str, stronger: str) -> None:
    assert chosen(f"{{agent: {weaker}}}", f"{{agent: {stronger}}}") == "p1"


def test_select_policy_equal_scopes_the_tenants_wins_over_a_projects_own() -> None:
    tenants = policies("policy: z\nscope: {project: web}")
    both = tenants.with_policy("acme", "a", 9, {"policy": "a"}, project="web")

    policy = both.select(FACTS)
    assert policy is not None
    assert policy.label == "z@1"


def test_select_policy_equal_scopes_newer_version_wins() -> None:
    older = policies("policy: a")
    both = older.with_policy("acme", "b", 2, {"policy": "b"})

    policy = both.select(FACTS)
    assert policy is not None
    assert policy.label == "b@2"


def test_select_policy_equal_scopes_and_versions_first_name_wins() -> None:
    policy = policies("policy: b", "policy: a").select(FACTS)

    assert policy is not None
    assert policy.name == "a"


def test_select_policy_nothing_fits_is_none() -> None:
    assert chosen("{agent: other}") is None


@pytest.mark.parametrize("dimension", ["user", "workspace"])
@pytest.mark.parametrize(("pattern", "fits"), [("*", True), ("?*", False), ("**", False), ("a*", False)])
def test_applies_missing_user_or_workspace_fits_only_the_star(
    dimension: str, pattern: str, fits: bool
) -> None:
    scope = Scope.model_validate({dimension: pattern})

    assert applies("acme", scope, FACTS._replace(**{dimension: ""})) is fits


@pytest.mark.parametrize("pattern", ["*", "acme", "a*", "globex"])
def test_applies_another_tenants_policy_never_does(pattern: str) -> None:
    assert applies("globex", Scope(tenant=pattern), FACTS) is False


def test_applies_patterns_know_case() -> None:
    assert applies("acme", Scope(agent="Billing-*"), FACTS) is False


def test_matcher_adversarial_pattern_is_fast() -> None:
    assert matcher("*a" * 60 + "b")("a" * 5000) is False


names = st.sampled_from(["*", "a*", "ab*", "abc", "*c", "a?c", "[ab]*", "x"])


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(DIMENSIONS, names)), min_size=1, max_size=6))
def test_select_policy_choice_is_the_most_specific_in_any_order(scopes: list[dict[str, str]]) -> None:
    facts = ScopeFacts("abc", "abc", "abc", "abc", "abc")

    class Published:
        def __init__(self, number: int, scope: dict[str, str]) -> None:
            self.tenant, self.project, self.name, self.version = "abc", "*", f"p{number}", 1
            self.scope = Scope.model_validate(scope)

    published = [Published(number, scope) for number, scope in enumerate(scopes)]
    first = select_policy(published, facts)
    assert first is select_policy(reversed(published), facts)
    fitting = [p for p in published if applies("abc", p.scope, facts)]
    assert (first is None) == (not fitting)
    for other in fitting:
        assert first is not None
        assert [specificity(getattr(first.scope, d)) for d in DIMENSIONS] >= [
            specificity(getattr(other.scope, d)) for d in DIMENSIONS
        ]
