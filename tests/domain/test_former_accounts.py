"""An account that was removed from its principal: whose it was, and that it has no voice."""

from tests.domain.steps import code, decided, held
from tests.domain.test_authority import MIA, MIA_AGAIN, MIAS, asking
from tests.domain.world import RITA, names, with_people


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
