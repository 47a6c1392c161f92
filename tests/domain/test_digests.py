"""A decision is about exactly the arguments that were seen: it names their digest."""

from typing import Any

import pytest

from schemas import commands as k
from tests.domain.steps import code, held, started
from tests.domain.world import RITA, the


def test_approve_stale_digest_is_refused_and_the_hold_stays_open() -> None:
    world = started()
    hold = held(world)

    assert code(world.ask(k.DecideHold(hold_id=hold.hold_id, decision="approve", digest="0" * 64), RITA)) == (
        "digest_mismatch"
    )
    assert world.state().holds[hold.hold_id].status == "open"


@pytest.mark.parametrize(
    ("decision", "more"),
    [
        ("approve", {}),
        ("edit", {"edited_arguments": '{"amount":1}'}),
        ("reject", {"feedback": "no"}),
        ("respond", {"value": '"later"'}),
    ],
)
def test_decision_on_a_call_without_a_digest_is_told_to_send_it(decision: Any, more: dict[str, Any]) -> None:
    world = started()
    hold = held(world)

    said = world.ask(k.DecideHold(hold_id=hold.hold_id, decision=decision, **more), RITA)

    assert code(said) == "invalid"
    assert "send the hold's digest" in the(said, "DecisionRefused").detail
    assert world.state().holds[hold.hold_id].status == "open"
