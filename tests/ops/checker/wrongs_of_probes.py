"""Stories of planted calls: one that is right, and others in which one runs or is told as it was not."""

from __future__ import annotations

from typing import Any

from schemas.events import calls as c
from schemas.events.executions import ExecutionCompleted, ExecutionStarted
from schemas.events.holds import HoldExpired
from schemas.probe import Probe, ProbeAnswer, answers_to_text, probe_to_text
from tests.ops.checker.builder import HOLD_MS, Story
from tests.ops.checker.wrongs_of_people import Wrong

BAD = Probe("olga", "nobody owes this", ("/a",))
MISSED = ProbeAnswer("rita", "", "approve", False)


def opened(story: Story, probe: Probe = BAD) -> None:
    """A run that is open for a planted call."""
    start = ExecutionStarted(agent="bot", user="", workspace="", request="", context="{}", by="bot")
    story.says(start.model_copy(update={"probe": probe_to_text(probe)}))


def planted(story: Story, **changes: Any) -> None:
    """A run with a planted call that people are asked about."""
    opened(story)
    holds(story, **changes)


def holds(story: Story, **changes: Any) -> None:
    proposed = story.proposed().model_copy(update={"probe": probe_to_text(BAD)})
    story.says(proposed, story.verdict("hold"), story.hold(**changes))


def ended(*answers: ProbeAnswer, **changes: Any) -> c.ProbeEnded:
    plain = c.ProbeEnded(
        call_id="c",
        hold_id="h",
        revision=1,
        agent="bot",
        tool="pay",
        result="missed",
        planted_by="olga",
        note=BAD.note,
        wrong='["/a"]',
        answers=answers_to_text(answers or (MISSED,)),
    )
    return plain.model_copy(update=changes)


DENIED = c.ToolCallDenied(call_id="c", revision=1, cause="probe", feedback="planted", decision_id="d")


def approved_and_told(story: Story) -> None:
    """Nothing is wrong here."""
    planted(story)
    completed = ExecutionCompleted(result="null", by="placet:probe")
    story.says(story.decision(), ended(), DENIED, completed)


def edited_and_told(story: Story) -> None:
    """Nothing is wrong here: the edit changes the place that is wrong."""
    planted(story)
    edit = story.decision("edit", edited_arguments='{"a":2}')
    caught = ProbeAnswer("rita", "", "edit", True)
    completed = ExecutionCompleted(result="null", by="placet:probe")
    story.says(edit, ended(caught, result="caught"), DENIED, completed)


def planted_at_once(story: Story) -> None:
    """Nothing is wrong here: an earlier version opened the run by the command that plants the call."""
    proposed = story.proposed().model_copy(update={"probe": probe_to_text(BAD)})
    start = ExecutionStarted(agent="bot", user="", workspace="", request="", context="{}", by="bot")
    story.says(start, proposed, story.verdict("hold"), story.hold())
    completed = ExecutionCompleted(result="null", by="placet:probe")
    story.says(story.decision(), ended(), DENIED, completed)


def planted_in_a_run_of_the_agent(story: Story) -> None:
    story.starts()
    holds(story)


def planted_in_a_run_that_was_opened_for_another_call(story: Story) -> None:
    opened(story, Probe("olga", "nobody knows them"))
    holds(story)


def planted_beside_a_call_of_the_agent(story: Story) -> None:
    opened(story)
    story.says(story.proposed().model_copy(update={"call_id": "own"}))
    holds(story)


def planted_call_released(story: Story) -> None:
    planted(story)
    story.says(story.decision(), story.release())


def planted_call_that_an_attempt_has(story: Story) -> None:
    planted(story)
    story.says(story.decision(), ended(), story.release())
    story.says(story.consumed())


def told_as_caught_though_it_was_missed(story: Story) -> None:
    planted(story)
    story.says(story.decision(), ended(result="caught"), DENIED)


def told_as_caught_by_an_edit_of_another_place(story: Story) -> None:
    planted(story)
    edit = story.decision("edit", edited_arguments='{"a":1,"b":2}')
    caught = ProbeAnswer("rita", "", "edit", True)
    story.says(edit, ended(caught, result="caught"), DENIED)


def told_with_answers_that_nobody_gave(story: Story) -> None:
    planted(story)
    story.says(story.decision(), ended(MISSED, ProbeAnswer("tess", "", "approve", False)), DENIED)


def answered_by_who_planted_it(story: Story) -> None:
    planted(story)
    own = ProbeAnswer("olga", "", "approve", False)
    story.says(story.decision(by="olga", roles=("operator",)), ended(own), DENIED)


def told_as_planted_by_another(story: Story) -> None:
    planted(story)
    story.says(story.decision(), ended(planted_by="otto"), DENIED)


def never_told(story: Story) -> None:
    planted(story)
    story.says(story.decision(), DENIED, ExecutionCompleted(result="null", by="placet:probe"))


def never_told_after_the_deadline(story: Story) -> None:
    planted(story)
    story.now_ms += HOLD_MS
    expired = DENIED.model_copy(update={"cause": "timeout", "decision_id": ""})
    story.says(HoldExpired(hold_id="h", on_timeout="deny"), expired)


def told_by_a_later_command(story: Story) -> None:
    planted(story)
    story.says(story.decision())
    story.says(ended(), DENIED)


def told_after_something_of_another_run(story: Story) -> None:
    planted(story)
    story.says(story.decision())
    version, story.version = story.version, 0
    other = ExecutionStarted(agent="bot", user="", workspace="", request="", context="{}", by="bot")
    story.says(other, key=b"acme/main/y")
    story.version = version


def told_twice(story: Story) -> None:
    planted(story)
    story.says(story.decision(), ended(), ended(), DENIED)


def end_of_a_call_that_nobody_planted(story: Story) -> None:
    story.held()
    story.says(story.decision(), ended(), DENIED)


OF_PROBES: list[tuple[Wrong, str]] = [
    (planted_in_a_run_of_the_agent, "I4"),
    (planted_in_a_run_that_was_opened_for_another_call, "I4"),
    (planted_beside_a_call_of_the_agent, "I4"),
    (planted_call_released, "I1"),
    (planted_call_that_an_attempt_has, "I1"),
    (told_as_caught_though_it_was_missed, "I1"),
    (told_as_caught_by_an_edit_of_another_place, "I1"),
    (told_with_answers_that_nobody_gave, "I1"),
    (answered_by_who_planted_it, "I1"),
    (told_as_planted_by_another, "I1"),
    (never_told, "I4"),
    (never_told_after_the_deadline, "I4"),
    (told_by_a_later_command, "I4"),
    (told_after_something_of_another_run, "I4"),
    (told_twice, "I4"),
    (end_of_a_call_that_nobody_planted, "I4"),
]
