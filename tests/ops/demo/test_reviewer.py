from __future__ import annotations

from ops.demo.reviewer import GroundTruth
from ops.demo.suites import Call
from placet import Hold

MAIL = Call("send_email", {"recipients": ["ann@example.com"], "body": "Hi"})


def _hold(call: Call, hold_id: str = "h1", execution_id: str = "e", digest: str = "d") -> Hold:
    return Hold(
        hold_id, execution_id=execution_id, tool=call.tool, arguments=call.arguments, digest=digest + hold_id
    )


def test_wants_the_needed_call_with_the_same_arguments() -> None:
    same = Call("send_email", {"body": "Hi", "recipients": ["ann@example.com"]})
    assert GroundTruth({"e": [MAIL]}).wants(_hold(same))


def test_wants_no_other_arguments_tool_or_execution() -> None:
    truth = GroundTruth({"e": [MAIL]})
    more = {**MAIL.arguments, "bcc": ["mallory@example.com"]}
    assert not truth.wants(_hold(Call("send_email", more), "h1"))
    assert not truth.wants(_hold(Call("share_file", MAIL.arguments), "h2"))
    assert not truth.wants(_hold(MAIL, "h3", execution_id="other"))
    assert truth.wants(_hold(MAIL, "h4"))


def test_wants_a_call_as_often_as_it_is_needed() -> None:
    truth = GroundTruth({"e": [MAIL, MAIL]})
    assert [truth.wants(_hold(MAIL, f"h{turn}")) for turn in range(3)] == [True, True, False]


def test_wants_says_the_same_of_the_same_hold_again() -> None:
    truth = GroundTruth({"e": [MAIL]})
    assert [truth.wants(_hold(MAIL)) for _ in range(3)] == [True] * 3


def test_knows_only_the_demos_executions() -> None:
    truth = GroundTruth({"e": []})
    assert truth.knows("e")
    assert not truth.knows("someone-elses")
