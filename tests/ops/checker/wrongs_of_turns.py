"""Stories of conversations with one thing wrong each, and the number of the invariant that it breaks."""

from __future__ import annotations

from schemas.events import conversations as v
from schemas.events import executions as x
from tests.ops.checker.builder import Story
from tests.ops.checker.wrongs_of_people import Wrong

LEASE_MS = 30_000


def sent(story: Story, turn_id: str = "m", by: str = "bot") -> None:
    if not story.version:
        story.starts()
    story.says(v.MessageSent(turn_id=turn_id, text="hello", by=by))


def claimed(story: Story, attempt_id: str = "a", turn_id: str = "m") -> None:
    until_ms = story.now_ms + LEASE_MS
    story.says(v.TurnClaimed(turn_id=turn_id, attempt_id=attempt_id, lease_until_ms=until_ms, by="bot"))


def posted(story: Story, number: int, attempt_id: str = "a", by: str = "bot") -> None:
    story.says(
        v.ReplyPosted(
            turn_id="m",
            attempt_id=attempt_id,
            number=number,
            text="well",
            details="{}",
            lease_until_ms=story.now_ms + LEASE_MS,
            by=by,
        )
    )


def yielded(story: Story, cause: v.YieldCause = "stopped", hold_id: str = "") -> None:
    story.says(v.TurnYielded(turn_id="m", cause=cause, hold_id=hold_id, by="bot"))


def ended(story: Story, outcome: v.TurnEnding = "completed") -> None:
    story.says(v.TurnEnded(turn_id="m", outcome=outcome, error="", by="bot"))


def working(story: Story) -> None:
    sent(story)
    claimed(story)


def suspended(story: Story) -> None:
    """A turn that waits for the hold of a call."""
    story.held()
    working(story)
    yielded(story, "waiting", "h")


def answered(story: Story) -> None:
    """A turn as it should be: lost once, suspended once, and ended."""
    suspended(story)
    story.says(story.decision(), story.release(), v.TurnResumed(turn_id="m", hold_id="h"))
    claimed(story, "b")
    posted(story, 1, "b")
    story.now_ms += LEASE_MS
    yielded(story, "lease")
    claimed(story, "c")
    posted(story, 2, "c")
    ended(story)


def claimed_by_two(story: Story) -> None:
    working(story)
    claimed(story, "b")


def claimed_before_an_earlier_turn_had_ended(story: Story) -> None:
    sent(story)
    sent(story, "n")
    claimed(story, turn_id="n")


def claimed_in_a_pause(story: Story) -> None:
    sent(story)
    story.says(x.ExecutionPaused(reason="", by="rita"))
    claimed(story)


def claimed_twice_by_one_attempt(story: Story) -> None:
    working(story)
    yielded(story)
    claimed(story)


def posted_by_another_attempt(story: Story) -> None:
    working(story)
    posted(story, 1, "b")


def posted_by_another_subject(story: Story) -> None:
    working(story)
    posted(story, 1, by="bob")


def posted_without_a_number(story: Story) -> None:
    working(story)
    posted(story, 2)


def posted_after_the_lease(story: Story) -> None:
    working(story)
    story.now_ms += LEASE_MS
    posted(story, 1)


def lease_ended_early(story: Story) -> None:
    working(story)
    yielded(story, "lease")


def ended_before_it_was_claimed(story: Story) -> None:
    sent(story)
    ended(story)


def turn_ended_twice(story: Story) -> None:
    working(story)
    ended(story)
    ended(story, "failed")


def resumed_while_its_hold_is_open(story: Story) -> None:
    story.held()
    working(story)
    yielded(story, "waiting", "h")
    story.says(v.TurnResumed(turn_id="m", hold_id="h"))


def hold_ended_without_resuming(story: Story) -> None:
    suspended(story)
    story.says(story.decision(), story.release())
    sent(story, "n")


def given_back_for_a_hold_that_had_ended(story: Story) -> None:
    story.released()
    working(story)
    yielded(story, "waiting", "h")
    story.says(story.consumed())


def completed_after_it_was_given_back(story: Story) -> None:
    working(story)
    yielded(story)
    ended(story)


def message_after_the_end(story: Story) -> None:
    story.starts()
    story.says(x.ExecutionCompleted(result="null", by="bot"))
    sent(story)


def execution_ended_before_its_turn(story: Story) -> None:
    sent(story)
    story.says(x.ExecutionCompleted(result="null", by="bot"))


def ended_by_itself_without_an_idle_time(story: Story) -> None:
    story.starts()
    story.says(x.ExecutionCompleted(result="null", by="placet:timer"))


def granted_by_who_had_asked_the_agent(story: Story) -> None:
    sent(story, by="rita")
    claimed(story)
    question = {"call_id": "", "request_id": "r", "cause": "request"}
    story.says(story.hold(exclude_requester=True, **question))
    story.says(story.decision().model_copy(update={"call_id": ""}))


def _held_for_another(story: Story) -> None:
    story.says(story.proposed(), story.verdict("hold"), story.hold(exclude_requester=True))


def call_approved_by_an_earlier_sender(story: Story) -> None:
    sent(story, by="rita")
    sent(story, "n", by="mia")
    claimed(story)
    _held_for_another(story)
    story.says(story.decision(), story.release())


def decided_by_who_wrote_only_later(story: Story) -> None:
    """As it should be: what is sent about an open hold makes nobody its requester."""
    sent(story, by="mia")
    claimed(story)
    _held_for_another(story)
    sent(story, "n", by="rita")
    story.says(story.decision(), story.release())


OF_TURNS: list[tuple[Wrong, str]] = [
    (claimed_by_two, "I4"),
    (claimed_before_an_earlier_turn_had_ended, "I4"),
    (claimed_in_a_pause, "I5"),
    (claimed_twice_by_one_attempt, "I3"),
    (posted_by_another_attempt, "I3"),
    (posted_by_another_subject, "I3"),
    (posted_without_a_number, "I6"),
    (posted_after_the_lease, "I5"),
    (lease_ended_early, "I5"),
    (ended_before_it_was_claimed, "I3"),
    (turn_ended_twice, "I4"),
    (resumed_while_its_hold_is_open, "I4"),
    (hold_ended_without_resuming, "I4"),
    (given_back_for_a_hold_that_had_ended, "I4"),
    (completed_after_it_was_given_back, "I3"),
    (message_after_the_end, "I4"),
    (execution_ended_before_its_turn, "I4"),
    (ended_by_itself_without_an_idle_time, "I5"),
    (granted_by_who_had_asked_the_agent, "I10"),
    (call_approved_by_an_earlier_sender, "I10"),
]
