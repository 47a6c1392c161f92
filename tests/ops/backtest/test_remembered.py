"""Remembered approvals in a backtest: they cover what they covered, also with a candidate in place."""

from __future__ import annotations

from typing import Any

from ops.backtest.found import Found
from schemas import commands as k
from schemas.events.rules import RuleMade
from schemas.message import Message
from tests.domain.ruled import DECIDER, GB, MILD, plain
from tests.domain.world import RITA, RULES, TOOLS, the
from tests.ops.backtest.past import Past, policy

PAYMENT: dict[str, Any] = GB
UNLIMITED = policy(*plain(max_uses="unlimited"))
LIMITED = policy(*plain(max_uses=3))


def past(document: dict[str, Any]) -> Past:
    made = Past()
    made.tools(*TOOLS[:2], *MILD)
    made.policy(document)
    made.start()
    return made


def ruled(made: Past, uses: int | None) -> None:
    """A rule of the approval of a first call, in force."""
    first = the(made.propose("pay", "first", **PAYMENT), "HoldOpened")
    told = made.decide(first, "approve", scope="rule", remember=f'{{"uses":{uses or "null"}}}')
    asked = the(told, "RuleAsked")
    made.publish(
        RuleMade(rule_id=asked.rule_id, status="active", reason="", document=asked.document, by="rita")
    )


def settle(made: Past, bodies: list[Message], *, granted: bool) -> None:
    asked = the(bodies, "ReservationAsked")
    made.ask(
        k.SettleReservation(
            call_id=asked.call_id,
            revision=asked.revision,
            reservation_id=asked.reservation_id,
            granted=granted,
            number=int(granted),
            detail="",
        ),
        DECIDER,
    )


def reproduced(found: Found, verdicts: int) -> Found:
    assert (found.not_reproduced, found.not_judged) == ([], [])
    assert found.judged == found.reproduced == verdicts
    return found


def test_call_that_a_rule_released_is_released_by_it_again() -> None:
    made = past(UNLIMITED)
    ruled(made, None)
    made.propose("pay", "covered", **PAYMENT)

    assert reproduced(made.against(UNLIMITED), 2).effects == {("hold", "hold"): 1, ("allow", "allow"): 1}
    asking = reproduced(made.against(policy(*RULES)), 2)
    assert [(row.call_id, row.before.reason) for row in asking.of_kind("newly_asked")] == [
        ("covered", "remembered")
    ]


def test_uses_that_were_given_are_given_again_and_others_are_presumed() -> None:
    made = past(LIMITED)
    ruled(made, 3)
    settle(made, made.propose("pay", "given", **PAYMENT), granted=True)
    settle(made, made.propose("pay", "none-left", **PAYMENT), granted=False)

    found = reproduced(made.against(LIMITED), 3)

    assert found.effects == {("hold", "hold"): 2, ("allow", "allow"): 1}


def test_rule_that_would_now_be_asked_counts_as_a_release() -> None:
    made = past(LIMITED)
    ruled(made, 3)
    denying = policy({"id": "no", "match": {"tools": ["pay"]}, "then": "deny"})
    made.policy(denying, version=2)
    made.propose("pay", "denied", **PAYMENT)

    (row,) = reproduced(made.against(LIMITED), 2).of_kind("newly_allowed")

    assert (row.call_id, row.after.reason, row.would_pass) == ("denied", "remembered", True)


def test_rule_that_a_rejection_contradicted_covers_nothing_more() -> None:
    made = past(UNLIMITED)
    ruled(made, None)
    released = the(made.propose("pay", "covered", **PAYMENT), "ToolCallReleased")
    made.ask(k.RevokeGrant(call_id=released.call_id, reason="no"), RITA)
    made.propose("pay", "asked-again", **PAYMENT)

    found = reproduced(made.against(UNLIMITED), 3)

    assert found.effects == {("hold", "hold"): 2, ("allow", "allow"): 1}
    assert [row.call_id for row in found.passing_again] == ["covered"]


def test_memory_of_a_run_covers_its_later_calls_again() -> None:
    made = past(policy(*plain(max_uses="unlimited", scopes=["execution"])))
    first = the(made.propose("pay", "first", **PAYMENT), "HoldOpened")
    made.decide(first, "approve", scope="execution")
    made.propose("pay", "covered", **PAYMENT)

    found = made.against(policy(*plain(max_uses="unlimited", scopes=["execution"])))

    assert reproduced(found, 2).effects == {("hold", "hold"): 1, ("allow", "allow"): 1}
