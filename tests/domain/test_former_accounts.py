"""An account that was removed from its principal: whose it was, that it has no voice, and gives nobody one."""

import pytest

from schemas import commands as k
from schemas.authority import Asked, could_decide
from schemas.principals import PrincipalDocument
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from tests.domain.ruled import MILD
from tests.domain.steps import code, decided, held, proposed, started
from tests.domain.test_authority import MIA, MIA_AGAIN, MIAS, RITAS, asking
from tests.domain.world import PROJECT, RITA, TENANT, names, published, rule, the, with_people


def test_account_that_was_taken_from_its_person_votes_as_nobody_any_more() -> None:
    """Removed and not published again, it would else be one more person beside the one whose it was."""
    world = asking(quorum=2)
    world.definitions = with_people(world.definitions, MIAS)
    hold = held(world)
    decided(world, hold, "approve", MIA_AGAIN)
    world.definitions = with_people(world.definitions, {**MIAS, "subjects": [MIA_AGAIN.subject]})

    assert code(decided(world, hold, "approve", MIA)) == "not_authorised"
    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_account_that_is_given_to_another_person_speaks_for_them() -> None:
    world = asking()
    world.definitions = with_people(world.definitions, MIAS)
    world.definitions = with_people(world.definitions, {**MIAS, "subjects": [MIA_AGAIN.subject]})
    world.definitions = with_people(
        world.definitions, {"principal": "max", "subjects": [MIA.subject], "roles": ["reviewer"]}
    )

    assert "ToolCallReleased" in names(decided(world, held(world), "approve", MIA))


NOBODY = Definitions(policies=PolicySet())
TAKEN = {**MIAS, "roles": [], "subjects": [MIA_AGAIN.subject]}


def test_rule_that_names_an_account_gives_its_former_person_nothing() -> None:
    """The name in the rule was the account's; who holds it no more is not whom the rule means."""
    world = asking(reviewers=[MIA.subject])
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    before = held(world)
    world.definitions = with_people(world.definitions, TAKEN)
    after = held(world, call_id="c2")

    for hold in (before, after):
        assert code(decided(world, hold, "approve", MIA)) == "not_authorised"
        assert code(decided(world, hold, "approve", MIA_AGAIN)) == "forbidden_role"


def test_vote_of_a_reviewer_whose_named_account_was_taken_counts_no_more() -> None:
    world = asking(reviewers=[MIA.subject, "rita-r"], quorum=2)
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    hold = held(world)
    decided(world, hold, "approve", MIA_AGAIN)
    world.definitions = with_people(world.definitions, TAKEN)

    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded"]


@pytest.mark.parametrize("handed", ["before it was taken", "afterwards"])
def test_delegation_to_an_account_gives_its_former_person_nothing(handed: str) -> None:
    world = asking(roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    hold = held(world)
    hand_on = k.DelegateHold(hold_id=hold.hold_id, to=MIA.subject)
    if handed == "afterwards":
        world.definitions = with_people(world.definitions, TAKEN)
    assert names(world.ask(hand_on, RITA)) == ["HoldDelegated"]
    world.definitions = with_people(world.definitions, TAKEN)

    assert code(decided(world, hold, "approve", MIA)) == "not_authorised"
    assert code(decided(world, hold, "approve", MIA_AGAIN)) == "forbidden_role"


def test_requirement_that_names_an_account_is_not_met_by_its_former_person() -> None:
    asked = Asked(roles=("treasurer",), reviewers=(MIA.subject,))
    people = with_people(NOBODY, MIAS, RITAS)

    assert could_decide(asked, MIA_AGAIN.subject, (), people.people.of(TENANT, PROJECT))
    people = with_people(people, TAKEN)
    assert not could_decide(asked, MIA_AGAIN.subject, (), people.people.of(TENANT, PROJECT))


def test_account_that_somebody_else_has_since_gives_authority_to_them() -> None:
    world = asking(reviewers=[MIA.subject])
    world.definitions = with_people(world.definitions, MIAS)
    world.definitions = with_people(world.definitions, TAKEN)
    world.definitions = with_people(
        world.definitions, {"principal": "max", "subjects": [MIA.subject], "roles": []}
    )
    hold = held(world)

    assert code(decided(world, hold, "approve", MIA_AGAIN)) == "forbidden_role"
    assert "ToolCallReleased" in names(decided(world, hold, "approve", MIA))


def test_rule_that_excludes_an_account_excludes_its_former_person_still() -> None:
    """What bars a person by a name is not undone by taking the account from them."""
    world = asking(excluded=[MIA.subject])
    world.definitions = with_people(world.definitions, MIAS)
    world.definitions = with_people(world.definitions, {**TAKEN, "roles": ["reviewer"]})

    assert code(decided(world, held(world), "approve", MIA_AGAIN)) == "not_authorised"


def test_rule_of_a_project_that_names_a_taken_account_gives_nothing_in_the_project() -> None:
    whole = with_people(NOBODY, MIAS, TAKEN).people
    theirs = PrincipalDocument(principal="paul", subjects=("p1", "p2"))
    people = whole.with_principal(TENANT, theirs, PROJECT)
    people = people.with_principal(TENANT, theirs.model_copy(update={"subjects": ("p2",)}), PROJECT)
    here, elsewhere = people.of(TENANT, PROJECT), people.of(TENANT, "another")

    assert not here.is_among("p2", ("p1",))
    assert not here.is_among(MIA_AGAIN.subject, (MIA.subject,))
    assert here.is_among("p2", ("paul",))
    assert here.is_among("p2", ("p1", "p2"))
    # Elsewhere nobody has published it: a token of that subject is whom its name says.
    assert elsewhere.is_among("p1", ("p1",))


@pytest.mark.parametrize("taken", [False, True])
def test_who_handed_a_hold_on_does_not_approve_its_edit_also_where_the_delegates_account_was_taken(
    taken: bool,
) -> None:
    """Whom an edit bars is asked by all names that the delegation had: taking one away frees nobody."""
    world = asking(roles=["treasurer"], exclude_requester=True)
    world.definitions = with_people(world.definitions, {**MIAS, "roles": []}, RITAS)
    hold = held(world)
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to=MIA.subject), RITA)
    edited = the(decided(world, hold, "edit", MIA_AGAIN, edited_arguments='{"amount":7}'), "HoldOpened")
    if taken:
        world.definitions = with_people(world.definitions, TAKEN)

    assert code(decided(world, edited, "approve", RITA)) == "own_request"


def test_delegator_does_not_approve_the_edit_of_a_delegate_whose_former_account_is_named() -> None:
    """A former account gives its person no word of their own, so the word that they gave was the delegator's."""
    world = asking(roles=["treasurer"], reviewers=[MIA.subject], exclude_requester=True)
    mias = {**MIAS, "roles": [], "subjects": [MIA.subject, MIA_AGAIN.subject, "mia-3"]}
    world.definitions = with_people(world.definitions, mias, RITAS)
    world.definitions = with_people(world.definitions, {**mias, "subjects": [MIA_AGAIN.subject, "mia-3"]})
    hold = held(world)
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="mia-3"), RITA)
    edited = the(decided(world, hold, "edit", MIA_AGAIN, edited_arguments='{"amount":7}'), "HoldOpened")

    assert code(decided(world, edited, "approve", RITA)) == "own_request"


def test_former_account_is_not_among_those_whom_its_former_principals_names_mean() -> None:
    people = with_people(NOBODY, MIAS, TAKEN).people.of(TENANT)

    assert people.is_among(MIA_AGAIN.subject, ("mia-m",))
    assert not people.is_among(MIA.subject, ("mia-m",))
    assert not people.is_among(MIA.subject, (MIA_AGAIN.subject,))


def test_what_is_remembered_ends_with_the_account_by_which_its_maker_was_named() -> None:
    """By a role or by a name: what gave the word its weight is gone."""
    rules = [rule("pays", "pay", "hold", reviewers=[MIA.subject], remember={"four_eyes": False})]
    world = started(definitions=with_people(published(NOBODY, rules, MILD), MIAS))
    hold = held(world)
    remember = '{"arguments":{"amount":{"equals":5}}}'
    assert "ToolCallReleased" in names(
        decided(world, hold, "approve", MIA_AGAIN, scope="execution", remember=remember)
    )
    again = proposed(world, "pay", "again")
    assert "ToolCallReleased" in names(again)
    world.definitions = with_people(world.definitions, TAKEN)

    assert "HoldOpened" in names(proposed(world, "pay", "a-third"))
