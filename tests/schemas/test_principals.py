"""People: whose account a subject is, and which roles count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.actor import Actor, system_actor
from schemas.policy_problems import PolicyRefused
from schemas.principals import People, PrincipalDocument, principal_from_value, principal_to_json

MIA = PrincipalDocument(
    principal="mia", subjects=("mia@new", "mia@old"), roles=("treasurer",), agents=("bot",)
)
NAMES = st.sampled_from(["a", "b", "c", "d"])


def actor(subject: str, *roles: str, agent: str | None = None) -> Actor:
    return Actor(subject=subject, tenant="acme", project="main", roles=roles, agent=agent)


def test_resolved_of_a_published_account_has_the_principals_roles_and_of_another_the_tokens() -> None:
    people = People().with_principal("acme", MIA).of("acme")

    assert people.resolved(actor("mia@old", "admin")).roles == ("treasurer",)
    assert people.resolved(actor("otto", "reviewer")).roles == ("reviewer",)
    assert people.resolved(actor("mia@new", "agent", agent="bot")).roles == ("agent",)
    other = People().with_principal("acme", MIA).of("other")
    assert other.resolved(actor("mia@old", "admin")).roles == ("admin",)


def test_with_principal_again_lets_go_of_accounts_and_agents_that_are_gone() -> None:
    again = PrincipalDocument(principal="mia", subjects=("mia@new",), roles=("reviewer",))
    people = People().with_principal("acme", MIA).with_principal("acme", again).of("acme")

    assert people.roles_of("mia@old") == ()
    assert people.name_of("mia@old") == "mia"
    assert people.delegators_of("bot") == ()
    taken = PrincipalDocument(principal="otto", subjects=("mia@old",))
    assert people.people.with_principal("acme", taken).of("acme").name_of("mia@old") == "otto"


def test_without_roles_of_a_principal_that_was_known_takes_them_from_its_accounts_alone() -> None:
    people = People().with_principal("acme", MIA).without_roles("acme", "mia").of("acme")

    assert people.roles_of("mia@old") == ()
    assert people.is_disabled("mia@new")
    assert people.roles_of("otto") is None


def test_without_roles_of_a_principal_nobody_could_read_takes_them_from_all_who_are_not_published() -> None:
    people = People().with_principal("acme", MIA).without_roles("acme", "unread")

    here = people.of("acme")
    assert here.resolved(actor("otto", "admin")).roles == ()
    assert here.resolved(actor("mia@new")).roles == ("treasurer",)
    assert here.resolved(system_actor("acme", "main")).roles == ("system",)
    assert people.of("other").roles_of("otto") is None
    read = PrincipalDocument(principal="unread", subjects=("u",))
    assert people.with_principal("acme", read).of("acme").roles_of("otto") is None


@given(st.lists(st.tuples(NAMES, st.sets(NAMES, min_size=1)), max_size=12))
def test_every_account_is_one_persons_whatever_is_published(steps: list[tuple[str, set[str]]]) -> None:
    people, mine, was = People(), dict[str, set[str]](), dict[str, str]()
    for name, subjects in steps:
        document = PrincipalDocument(principal=name, subjects=tuple(sorted(subjects)))
        taken = any(subjects & others for owner, others in mine.items() if owner != name)
        if taken:
            with pytest.raises(PolicyRefused):
                people.with_principal("acme", document)
            continue
        was |= dict.fromkeys(mine.get(name, set()) - subjects, name)
        people, mine[name] = people.with_principal("acme", document), subjects
    here = people.of("acme")
    for subject in ("a", "b", "c", "d"):
        owner = next((name for name, subjects in mine.items() if subject in subjects), "")
        assert here.principal_of(subject) == owner
        nobodys = was.get(subject) or (f"subject/{subject}" if subject in mine else subject)
        assert here.name_of(subject) == (owner or nobodys)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([], "principal"),
        ({"principal": "a"}, "subjects"),
        ({"principal": "a", "subjects": ["x", "x"]}, "subjects"),
        ({"principal": "a b", "subjects": ["x"]}, "principal"),
        ({"principal": "a", "subjects": ["x"], "roles": ["system"]}, "roles"),
        ({"principal": "a", "subjects": ["placet:decider"]}, "subjects[0]"),
        ({"principal": "a", "subjects": ["x"], "disabled": "no"}, "disabled"),
    ],
)
def test_principal_from_value_that_cannot_be_is_refused_at_its_path(value: object, path: str) -> None:
    with pytest.raises(PolicyRefused) as refused:
        principal_from_value(value)

    assert path in [problem.path for problem in refused.value.problems]


def test_principal_to_json_keeps_what_was_written() -> None:
    document = principal_from_value({"subjects": ["x"], "principal": "a"})

    assert principal_to_json(document) == '{"principal":"a","subjects":["x"]}'


def test_knows_names_and_accounts_where_anybody_is_published_and_else_everybody() -> None:
    here = People().with_principal("acme", MIA, "main")
    people = here.of("acme", "main")
    asked = ("mia", "mia@old", "nobody@nowhere")
    assert [people.knows(name) for name in asked] == [True, True, False]
    assert here.of("acme", "other").knows("nobody@nowhere")
    assert here.of("other", "main").knows("nobody@nowhere")
    assert here.without_roles("acme", "unread", "main").of("acme", "main").knows("nobody@nowhere")
