"""A run read from its events: its calls and questions in order, what people said, and what came of each."""

from __future__ import annotations

import pytest

from ops.fork.errors import HistoryGapError
from ops.fork.recorded import RecordedQuestion, read_run
from schemas import commands as k
from tests.domain.steps import ask_two
from tests.domain.world import OLGA, RITA, the
from tests.ops.fork.story import Story


def test_calls_and_questions_are_read_in_the_order_in_which_they_were_proposed() -> None:
    story = Story()
    story.propose("first", "read", path="a")
    story.ask("which", "rent")
    hold = story.propose("second", "pay", amount=5)
    story.propose("third", "read", path="b")
    story.decide(hold, "edit", edited_arguments='{"amount":4}')
    story.run("second", {"receipt": "R-1"})

    run = story.read()

    steps = [s.asked.request_id if isinstance(s, RecordedQuestion) else s.call_id for s in run.steps]
    assert steps == ["first", "which", "second", "third"]
    second = run.calls["second"]
    assert (second.arguments, second.final_arguments) == ({"amount": 5}, '{"amount":4}')
    assert [one.decision.decision for one in second.holds if one.decision] == ["edit"]
    assert (second.status, second.result) == ("succeeded", ("succeeded", '{"receipt":"R-1"}'))
    question = run.steps[1]
    assert isinstance(question, RecordedQuestion)
    assert question.provided is not None
    assert question.provided.response == '"rent"'


def test_status_of_each_end_is_told() -> None:
    story = Story()
    story.propose("denied", "drop")
    story.decide(story.propose("rejected", "pay", amount=1), "reject")
    story.decide(story.propose("approved", "pay", amount=2), "approve")
    story.decide(story.propose("failed", "pay", amount=3), "approve")
    story.run("failed", error="boom")
    story.decide(story.propose("revoked", "pay", amount=4), "approve")
    story.world.ask(k.RevokeGrant(call_id="revoked", reason="no"), RITA)
    late = story.propose("late", "pay", amount=6)
    story.expire(late)

    run = story.read()

    found = {name: call.status for name, call in run.calls.items()}
    assert found == {
        "denied": "denied",
        "rejected": "denied",
        "approved": "released",
        "failed": "failed",
        "revoked": "revoked",
        "late": "expired",
    }
    assert [one.expired for one in run.calls["late"].holds] == [True]


def test_voters_of_a_quorum_are_all_named() -> None:
    story = Story()
    ask_two(story.world)
    hold = story.propose("two", "pay", amount=5)
    story.decide(hold, "approve")
    story.decide(hold, "approve", OLGA)

    (one,) = story.read().calls["two"].holds

    assert one.voters == ("rita", "olga")


def test_pauses_are_counted_as_not_repeated_and_refusals_are_not() -> None:
    story = Story()
    story.world.ask(k.PauseExecution(reason="wait"), RITA)
    story.world.ask(k.ResumeExecution(feedback=""), RITA)
    story.world.ask(k.ResumeExecution(feedback=""), RITA)
    story.world.ask(k.CompleteExecution(result="1"))

    run = story.read()

    assert run.unrepeated == {"ExecutionPaused": 1, "ExecutionResumed": 1}
    assert run.ended is not None


@pytest.mark.parametrize("missing", [0, 1, 3])
def test_history_with_a_gap_is_refused(missing: int) -> None:
    story = Story()
    story.paid("c", {"receipt": "R-1"})
    items = story.items()
    del items[missing]

    with pytest.raises(HistoryGapError, match=f"event {missing + 1} is missing"):
        read_run("x", items)


def test_event_of_a_newer_version_is_refused() -> None:
    items = [*Story().items(), {"event_id": "e", "version": 2, "type": "ToolCallPondered", "data": {}}]

    with pytest.raises(HistoryGapError, match="ToolCallPondered"):
        read_run("x", items)


def test_run_of_no_events_is_refused() -> None:
    with pytest.raises(HistoryGapError, match="does not begin"):
        read_run("x", [])


def test_release_is_the_newest_one() -> None:
    story = Story()
    hold = story.propose("c", "pay", amount=5)
    assert the([hold], "HoldOpened").call_id == "c"
    story.decide(hold, "approve")

    call = story.read().calls["c"]

    assert call.released is not None
    assert (call.released.released_by, call.released.arguments) == ("decision", '{"amount":5}')
