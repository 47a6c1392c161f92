"""Why trust does not release a call, in words: what is approved already, and of which calls."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

import pytest

from tests.domain.counting import ENOUGH, answer, is_released, learning, propose
from tests.domain.trusting import outcome

BOOKING = {"properties": {"room": {"type": "string"}, "minutes": {"type": "number"}}}


def why(world: Any, arguments: dict[str, Any]) -> str:
    return outcome(propose(world, arguments)).why


def test_first_call_of_an_agent_is_asked_because_no_approval_is_counted() -> None:
    world, _ = learning(BOOKING)

    assert why(world, {"room": "red", "minutes": 45}) == "no approval of such a call is counted yet"


def test_approvals_of_calls_with_something_new_are_counted_in_the_reason_for_a_known_call() -> None:
    world, _ = learning(BOOKING)
    for letter in ascii_lowercase[:ENOUGH]:
        answer(world, "approve", {"room": f"room {letter}", "minutes": 45})

    # The first room's number of minutes was new beside it.
    assert why(world, {"room": "room c", "minutes": 45}) == (
        "14 approvals of send are of calls with something new at room; none is of such a call"
    )


@pytest.mark.parametrize(
    ("approved", "proposed", "said"),
    [
        (
            {"room": "red", "minutes": 45},
            {"room": "red", "minutes": 450},
            "people have approved what is at room, but not in such a call with something new at minutes",
        ),
        (
            {"room": "red", "minutes": 45},
            {"room": "blue", "minutes": 70},
            "people have not approved such a call with something new at minutes, room",
        ),
        (
            {"room": "red", "minutes": 45},
            {"room": "blue", "minutes": 45},
            "people have approved what is at minutes, but not in such a call with something new at room",
        ),
        (
            {"pay": True},
            {"pay": False},
            "13 approvals of send are of calls with arguments of other kinds; none is of such a call",
        ),
    ],
    ids=["other number", "all new", "new value", "other kinds"],
)
def test_reason_says_what_is_approved_and_in_which_calls(
    approved: dict[str, Any], proposed: dict[str, Any], said: str
) -> None:
    world, _ = learning(BOOKING)
    answer(world, "approve", approved, ENOUGH)

    assert why(world, proposed) == said


def test_reason_of_a_class_with_approvals_names_its_own_trust() -> None:
    world, _ = learning(BOOKING)
    answer(world, "approve", {"pay": True}, 2)

    assert why(world, {"pay": True}).startswith("trust is at least")
    answer(world, "approve", {"pay": True}, ENOUGH)
    assert is_released(world, {"pay": True})
