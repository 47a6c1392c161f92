"""Stories with one thing wrong each, and the number of the invariant that it breaks."""

from __future__ import annotations

import json

from schemas.events import calls as c
from schemas.events import executions as x
from schemas.events import holds as h
from tests.ops.checker.builder import HOLD_MS, Story, asked_of
from tests.ops.checker.wrongs_of_people import OF_PEOPLE, Wrong
from tests.ops.checker.wrongs_of_probes import OF_PROBES
from tests.ops.checker.wrongs_of_trust import OF_TRUST
from tests.ops.checker.wrongs_of_turns import OF_TURNS


def other_digest_released(story: Story) -> None:
    story.held()
    story.says(story.decision(), story.release(digest="0" * 64))


def other_arguments_released(story: Story) -> None:
    story.held()
    story.says(story.decision(), story.release(arguments='{"a":2}'))


def released_by_nobody(story: Story) -> None:
    story.held()
    story.says(story.release())


def released_by_a_vote_that_is_not_enough(story: Story) -> None:
    story.held(quorum=2)
    story.says(story.decision(resolves=False), story.release())


def quorum_of_one_person(story: Story) -> None:
    story.held(quorum=2)
    story.says(story.decision(), story.release())


def remembered_what_the_last_voter_alone_asked_for(story: Story) -> None:
    story.held(quorum=2)
    makers = [{"by": "rita", "roles": []}, {"by": "rudi", "roles": []}]
    wide = json.dumps({"arguments": {"a": {"any": True}}, "made_by": "rudi", "makers": makers})
    story.says(story.decision(resolves=False))
    last = story.decision(by="rudi", decision_id="d2", scope="execution", remember=wide)
    story.says(last, story.release())


def released_on_timeout(story: Story) -> None:
    story.held()
    story.now_ms += HOLD_MS
    story.says(h.HoldExpired(hold_id="h", on_timeout="deny"), story.release())


def approved_after_the_deadline(story: Story) -> None:
    story.held()
    story.now_ms += HOLD_MS
    story.says(story.decision(), story.release())


def expired_early(story: Story) -> None:
    story.held()
    story.says(h.HoldExpired(hold_id="h", on_timeout="deny"))


def reminded_early(story: Story) -> None:
    story.held(remind_at_ms=story.now_ms + HOLD_MS // 2)
    story.says(h.HoldReminded(hold_id="h"))


def reminded_twice(story: Story) -> None:
    story.held(remind_at_ms=story.now_ms)
    story.says(h.HoldReminded(hold_id="h"))
    story.says(h.HoldReminded(hold_id="h"))


def consumed_without_release(story: Story) -> None:
    story.held()
    story.says(story.consumed())


def consumed_when_denied(story: Story) -> None:
    story.held()
    denied = c.ToolCallDenied(call_id="c", revision=1, cause="rejected", feedback="", decision_id="d")
    story.says(story.decision("reject"), denied)
    story.says(story.consumed())


def consumed_twice(story: Story) -> None:
    story.released()
    story.says(story.consumed("a"))
    story.says(story.consumed("b"))


def consumed_again_though_the_outcome_is_unknown(story: Story) -> None:
    story.released()
    story.says(story.consumed("a"))
    story.says(c.ToolCallOutcomeUnknown(call_id="c", attempt_id="a", reason="?"))
    story.says(story.consumed("b"))


def consumed_after_the_grant_expired(story: Story) -> None:
    story.released()
    story.now_ms += HOLD_MS
    story.says(story.consumed())


def ended_twice(story: Story) -> None:
    story.released()
    story.says(story.consumed())
    story.says(story.succeeded())
    story.says(c.ToolCallFailed(call_id="c", attempt_id="a", error="", duration_ms=1, by="bot"))


def own_request_approved(story: Story) -> None:
    story.held(exclude_requester=True)
    story.says(story.decision(by="bot"), story.release())


def approved_without_the_role(story: Story) -> None:
    story.held(roles=("treasurer",))
    story.says(story.decision(), story.release())


def second_run_asks_others_than_the_edit(story: Story) -> None:
    story.held(roles=("reviewer", "cfo"))
    story.says(story.decision(), story.release(asked=asked_of()))
    story.says(story.consumed("a"))
    unknown = c.ToolCallOutcomeUnknown(call_id="c", attempt_id="a", reason="?")
    story.says(unknown, story.hold(hold_id="h2", cause="outcome_unknown", roles=("reviewer", "cfo")))


def consumed_without_the_people_whom_the_edit_asked(story: Story) -> None:
    story.held()
    story.says(story.decision(), story.release(asked=asked_of(quorum=2)))
    story.says(story.consumed("a"))


def another_tenants_event(story: Story) -> None:
    story.starts()
    story.says(x.ExecutionPaused(reason="", by="mallory"), tenant="evil")


def lost_record(story: Story) -> None:
    story.starts()
    story.version += 1
    story.says(x.ExecutionPaused(reason="", by="rita"))


def command_decided_twice(story: Story) -> None:
    story.starts()
    story.says(x.ExecutionPaused(reason="", by="rita"), command_id="pause")
    story.says(x.ExecutionResumed(feedback="", by="rita"))
    story.says(x.ExecutionPaused(reason="", by="rita"), command_id="pause")


def time_run_backwards(story: Story) -> None:
    story.starts()
    story.now_ms -= 1
    story.says(x.ExecutionPaused(reason="", by="rita"))


def adopted_what_is_not_there(story: Story) -> None:
    story.starts()
    story.adopts(7, "nothing")


def given_up_after_two_writers_had_tried_it(story: Story) -> None:
    story.starts()
    story.tries_alone(7)
    story.tries_alone(7)
    gives_up(story)


def given_up_after_two_trials(story: Story) -> None:
    story.starts()
    gives_up(story, trials=2)


def given_up_after_trials_of_which_nothing_was_said_before(story: Story) -> None:
    story.starts()
    story.says(x.CommandAbandoned(command="ProposeToolCall", command_offset=7, attempts=3, trials=3))


def given_up_by_an_earlier_version_that_had_tried_another_command(story: Story) -> None:
    story.starts()
    story.tries_alone(8)
    story.says(x.CommandAbandoned(command="ProposeToolCall", command_offset=7, attempts=3))


def given_up_by_an_earlier_version_after_two_attempts(story: Story) -> None:
    story.starts()
    story.tries_alone(7)
    story.says(x.CommandAbandoned(command="ProposeToolCall", command_offset=7, attempts=2))


def gives_up(story: Story, trials: int = 0) -> None:
    """By a writer that says as well which command it takes next, and by its own word does not count."""
    story.tries_alone(7)
    story.says(x.CommandAbandoned(command="ProposeToolCall", command_offset=7, attempts=3, trials=trials))


def rolled_back_what_never_ran(story: Story) -> None:
    story.held(on_reject="rollback")
    denied = c.ToolCallDenied(call_id="c", revision=1, cause="rejected", feedback="", decision_id="d")
    rollback = h.RollbackStarted(hold_id="h", call_id="c", calls=("c",), by="rita")
    story.says(story.decision("reject"), denied, rollback)


def reported_by_another_than_who_consumed(story: Story) -> None:
    story.released()
    story.says(story.consumed(by="bank"))
    story.says(story.succeeded(by="bot"))


def renewed_by_another_than_who_consumed(story: Story) -> None:
    story.released()
    story.says(story.consumed(by="bank"))
    until_ms = story.now_ms + 1
    story.says(c.LeaseRenewed(call_id="c", attempt_id="a", lease_until_ms=until_ms, by="bot"))


def impact(by: str = "rita", **changes: object) -> c.ImpactReported:
    plain = c.ImpactReported(
        call_id="c", revision=1, agent="bot", tool="pay", trust_class="", reason="harm", by=by
    )
    return plain.model_copy(update=changes)


def impact_of_a_call_that_never_ran(story: Story) -> None:
    story.released()
    story.says(impact())


def impact_of_a_call_that_was_never_proposed(story: Story) -> None:
    story.starts()
    story.says(impact())


def impact_told_of_another_class(story: Story) -> None:
    story.released()
    story.says(story.consumed())
    story.says(impact(trust_class="risk=reads"))


def impact_reported_twice_by_one_person(story: Story) -> None:
    story.released()
    story.says(story.consumed())
    story.says(impact())
    story.says(story.succeeded())
    story.says(impact())


WRONGS: list[tuple[Wrong, str]] = [
    *((wrong, "I10") for wrong in OF_PEOPLE),
    *OF_TURNS,
    *OF_PROBES,
    *((wrong, "I1") for wrong, _ in OF_TRUST),
    (reported_by_another_than_who_consumed, "I2"),
    (renewed_by_another_than_who_consumed, "I2"),
    (rolled_back_what_never_ran, "I4"),
    (other_digest_released, "I1"),
    (other_arguments_released, "I1"),
    (released_by_nobody, "I5"),
    (released_by_a_vote_that_is_not_enough, "I5"),
    (quorum_of_one_person, "I10"),
    (remembered_what_the_last_voter_alone_asked_for, "I10"),
    (released_on_timeout, "I5"),
    (approved_after_the_deadline, "I5"),
    (reminded_early, "I5"),
    (reminded_twice, "I5"),
    (expired_early, "I5"),
    (consumed_without_release, "I1"),
    (consumed_when_denied, "I5"),
    (consumed_twice, "I2"),
    (consumed_again_though_the_outcome_is_unknown, "I2"),
    (consumed_after_the_grant_expired, "I5"),
    (ended_twice, "I4"),
    (impact_of_a_call_that_never_ran, "I4"),
    (impact_of_a_call_that_was_never_proposed, "I4"),
    (impact_told_of_another_class, "I1"),
    (impact_reported_twice_by_one_person, "I4"),
    (own_request_approved, "I10"),
    (approved_without_the_role, "I10"),
    (second_run_asks_others_than_the_edit, "I10"),
    (consumed_without_the_people_whom_the_edit_asked, "I10"),
    (another_tenants_event, "I9"),
    (lost_record, "I6"),
    (time_run_backwards, "I5"),
    (adopted_what_is_not_there, "I7"),
    (given_up_after_two_writers_had_tried_it, "I3"),
    (given_up_after_two_trials, "I3"),
    (given_up_after_trials_of_which_nothing_was_said_before, "I3"),
    (given_up_by_an_earlier_version_that_had_tried_another_command, "I3"),
    (given_up_by_an_earlier_version_after_two_attempts, "I3"),
]
