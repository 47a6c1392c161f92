"""A person's own word, said again after the hold was decided."""

from __future__ import annotations

from schemas.events.holds import DecisionRefused
from tests.domain.steps import TESSA, decided, held, started
from tests.domain.world import RITA


def test_decide_again_by_the_same_person_is_told_apart_from_who_was_faster() -> None:
    world = started()
    hold = held(world)
    decided(world, hold, "approve")
    for actor, said in (
        (RITA, "rita decided it already"),
        (TESSA, "rita decided it first"),
    ):
        (refused,) = decided(world, hold, "approve", by=actor)
        assert isinstance(refused, DecisionRefused)
        assert (refused.code, refused.detail) == ("already_decided", said)
