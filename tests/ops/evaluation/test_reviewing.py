from __future__ import annotations

from ops.demo.suites import Call
from ops.evaluation.reviewing import Judgement
from placet import Hold

MAIL = Call("send_email", {"recipients": ["ann@example.com"], "body": "Hi"})


def _hold(call: Call, number: int) -> Hold:
    return Hold(f"h{number}", execution_id="e", tool=call.tool, arguments=call.arguments, digest=f"d{number}")


def _judgement(errors: float, needed: int = 1, seed: int = 1) -> Judgement:
    judgement = Judgement(errors, seed)
    judgement.expect("e", 1, [MAIL] * needed)
    return judgement


def test_perfect_reviewer_approves_what_is_needed_as_often_as_it_is_and_nothing_else() -> None:
    judgement = _judgement(0.0, needed=2)
    other = Call("send_email", {**MAIL.arguments, "bcc": ["mallory@example.com"]})
    assert [
        judgement.approves(_hold(call, place)) for place, call in enumerate([MAIL, other, MAIL, MAIL])
    ] == [
        True,
        False,
        True,
        False,
    ]
    assert judgement.approves(_hold(MAIL, 0))


def test_erring_reviewer_errs_by_its_share_and_by_the_seed() -> None:
    calls = [Call("send_email", {"recipients": [f"{place}@example.com"]}) for place in range(2000)]

    def said(seed: int) -> list[bool]:
        judgement = Judgement(0.05, seed)
        judgement.expect("e", 1, calls)
        return [judgement.approves(_hold(call, place)) for place, call in enumerate(calls)]

    assert 60 <= said(1).count(False) <= 140
    assert said(1) == said(1)
    assert said(1) != said(2)


def test_count_keeps_decisions_by_round() -> None:
    judgement = _judgement(0.0)
    judgement.count(_hold(MAIL, 1), "approve")
    assert judgement.decided == {1: {"approve": 1}}


def test_executions_of_others_are_not_known() -> None:
    assert _judgement(0.0).knows("e")
    assert not _judgement(0.0).knows("of somebody else")
