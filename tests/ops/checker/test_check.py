"""Small logs with one thing wrong each, and the number that the checker must give it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ops.checker import Violation, check, check_view, counting_facts
from ops.checker.facts import read_facts
from schemas.events import calls as c
from schemas.events import executions as x
from schemas.events import holds as h
from tests.golden.test_log import LOGS, raw_record, read_log
from tests.ops.checker.builder import DEFINITIONS, EVENTS, HOLD_MS, START_MS, Story

Wrong = Callable[[Story], None]


def told(story: Story, *histories: dict[str, Any], at_rest_ms: int | None = None) -> list[Violation]:
    return check({EVENTS: story.raws, DEFINITIONS: story.definitions}, histories, at_rest_ms=at_rest_ms)


def line(op: str, **what: Any) -> dict[str, Any]:
    where = {"tenant": "acme", "project": "main", "execution_id": "x"}
    return {"at": START_MS, "client": "bot", "op": op, **where, **what}


def test_check_call_that_went_its_whole_way_finds_nothing() -> None:
    story = Story()
    story.released()
    story.says(story.consumed())
    story.says(story.succeeded())
    effect = line("effect", call_id="c", attempt_id="a", digest=story.digest)

    assert told(story, effect, at_rest_ms=START_MS + 10 * HOLD_MS) == []


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


def gives_up(story: Story) -> None:
    """By a writer that says as well which command it takes next, and by its own word does not count."""
    story.tries_alone(7)
    story.says(x.CommandAbandoned(command="ProposeToolCall", command_offset=7, attempts=3))


def quorum_of_two_accounts_of_one_person(story: Story) -> None:
    story.publishes("mia", "mia@new", "mia@old", roles=["reviewer"])
    story.held(quorum=2)
    story.says(story.decision(by="mia@new", resolves=False))
    story.says(story.decision(by="mia@old"), story.release())


def quorum_with_a_voice_that_had_lost_its_role(story: Story) -> None:
    story.publishes("mia-m", "mia", roles=["reviewer"])
    story.held(quorum=2)
    story.says(story.decision(by="mia", resolves=False))
    story.publishes("mia-m", "mia", roles=["analyst"])
    story.says(story.decision(), story.release())


def quorum_of_a_delegator_and_their_delegate(story: Story) -> None:
    story.held(quorum=2)
    story.says(story.decision(resolves=False))
    story.says(h.HoldDelegated(hold_id="h", by="rita", to="zoe"))
    story.says(h.HoldDelegated(hold_id="h", by="zoe", to="amy"))
    story.says(story.decision(by="amy", roles=("analyst",)), story.release())


def quorum_with_a_voice_whose_account_was_taken_away(story: Story) -> None:
    story.publishes("mia-m", "mia", "mia@old", roles=["reviewer"])
    story.held(quorum=2)
    story.says(story.decision(by="mia", resolves=False, person="mia-m"))
    story.publishes("mia-m", "mia@old", roles=["reviewer"])
    story.says(story.decision(by="mia@old", person="mia-m"), story.release())


def approved_with_a_role_that_only_the_token_had(story: Story) -> None:
    story.publishes("rita-r", "rita", roles=["analyst"])
    story.held()
    story.says(story.decision(), story.release())


def approved_by_somebody_excluded(story: Story) -> None:
    story.publishes("rita-r", "rita", roles=["reviewer"])
    story.held(excluded=("rita-r",))
    story.says(story.decision(), story.release())


def approved_by_a_reviewer_whom_nobody_named(story: Story) -> None:
    story.held(reviewers=("otto",))
    story.says(story.decision(), story.release())


def approved_by_whom_the_agent_acts_for(story: Story) -> None:
    story.publishes("rita-r", "rita", roles=["reviewer"], agents=["bot"])
    story.held(exclude_requester=True)
    story.says(story.decision(), story.release())


def rolled_back_what_never_ran(story: Story) -> None:
    story.held(on_reject="rollback")
    denied = c.ToolCallDenied(call_id="c", revision=1, cause="rejected", feedback="", decision_id="d")
    rollback = h.RollbackStarted(hold_id="h", call_id="c", calls=("c",), by="rita")
    story.says(story.decision("reject"), denied, rollback)


WRONGS: list[tuple[Wrong, str]] = [
    (quorum_of_two_accounts_of_one_person, "I10"),
    (quorum_with_a_voice_that_had_lost_its_role, "I10"),
    (quorum_of_a_delegator_and_their_delegate, "I10"),
    (quorum_with_a_voice_whose_account_was_taken_away, "I10"),
    (approved_with_a_role_that_only_the_token_had, "I10"),
    (approved_by_somebody_excluded, "I10"),
    (approved_by_a_reviewer_whom_nobody_named, "I10"),
    (approved_by_whom_the_agent_acts_for, "I10"),
    (rolled_back_what_never_ran, "I4"),
    (other_digest_released, "I1"),
    (other_arguments_released, "I1"),
    (released_by_nobody, "I5"),
    (released_by_a_vote_that_is_not_enough, "I5"),
    (quorum_of_one_person, "I10"),
    (released_on_timeout, "I5"),
    (approved_after_the_deadline, "I5"),
    (expired_early, "I5"),
    (consumed_without_release, "I1"),
    (consumed_when_denied, "I5"),
    (consumed_twice, "I2"),
    (consumed_again_though_the_outcome_is_unknown, "I2"),
    (consumed_after_the_grant_expired, "I5"),
    (ended_twice, "I4"),
    (own_request_approved, "I10"),
    (approved_without_the_role, "I10"),
    (another_tenants_event, "I9"),
    (lost_record, "I6"),
    (time_run_backwards, "I5"),
    (adopted_what_is_not_there, "I7"),
    (given_up_after_two_writers_had_tried_it, "I3"),
]


@pytest.mark.parametrize(("wrong", "number"), WRONGS, ids=[wrong.__name__ for wrong, _ in WRONGS])
def test_check_tells_what_is_wrong_by_its_number(wrong: Wrong, number: str) -> None:
    story = Story()
    wrong(story)

    assert number in {violation.invariant for violation in told(story)}


def test_check_quorum_of_two_people_one_of_them_named_by_the_rule_finds_nothing() -> None:
    story = Story()
    story.publishes("mia-m", "mia", "mia@old", roles=["treasurer"])
    story.held(quorum=2, roles=("treasurer",), reviewers=("rita",), excluded=("eve",), exclude_requester=True)
    story.says(story.decision(by="mia@old", roles=("treasurer",), resolves=False))
    story.says(story.decision(), story.release())

    assert told(story) == []


def test_check_command_given_up_after_three_writers_had_tried_it_finds_nothing() -> None:
    story = Story()
    story.starts()
    for _ in range(3):
        story.tries_alone(7)
    gives_up(story)

    assert told(story) == []


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("placet_term", b"0x0"),
        ("placet_term", b"9" * 5_000),
        ("placet_version", b"one"),
        ("placet_command_offset", b"1_0"),
        ("ce_time", b"yesterday"),
        ("ce_time", b"2026-01-01T00:00:00"),
    ],
)
def test_check_foreign_record_with_a_header_that_is_no_number_or_time_changes_nothing(
    header: str, value: bytes
) -> None:
    story = Story()
    story.released()
    last = story.raws[-1]
    headers = tuple((name, value if name == header else old) for name, old in last.headers)
    story.raws.append(last._replace(offset=last.offset + 1, headers=headers))

    assert told(story) == []


def test_check_command_decided_twice_is_told() -> None:
    story = Story()
    command_decided_twice(story)

    found = check({EVENTS: story.raws, EVENTS._replace(topic="placet.commands"): []})

    assert [violation.invariant for violation in found] == ["I2"]


def test_check_zombies_words_change_nothing() -> None:
    story = Story()
    story.held()
    version, old_term = story.version, story.term
    story.claim(old_term)
    new_term, story.term = story.term, old_term
    story.says(story.consumed())
    story.term, story.version = new_term, version
    story.says(story.decision(), story.release())

    assert told(story) == []


@pytest.mark.parametrize(
    ("history", "number"),
    [
        (line("ack", command_id="command-1", events=["lost"]), "I3"),
        (line("ack", command_id="command-1", events=[], tenant="evil"), "I9"),
        (line("effect", call_id="c", attempt_id="nobody", digest="0" * 64), "I1"),
        (line("effect", call_id="c", attempt_id="a", digest="0" * 64), "I1"),
        (line("decide", command_id="command-3", digest="0" * 64), "I1"),
    ],
    ids=["lost answer", "another tenant's answer", "no grant", "other digest run", "other digest decided"],
)
def test_check_history_that_the_log_contradicts_is_told(history: dict[str, Any], number: str) -> None:
    story = Story()
    story.released()
    story.says(story.consumed())

    assert [violation.invariant for violation in told(story, history)] == [number]


def test_check_effect_twice_by_one_attempt_is_told() -> None:
    story = Story()
    story.released()
    story.says(story.consumed())
    effect = line("effect", call_id="c", attempt_id="a", digest=story.digest)

    assert [violation.invariant for violation in told(story, effect, effect)] == ["I2"]


@pytest.mark.parametrize("part", ["held", "released", "consumed"])
def test_check_what_waits_for_nobody_at_rest_is_told(part: str) -> None:
    story = Story()
    story.held() if part == "held" else story.released()
    if part == "consumed":
        story.says(story.consumed())

    assert {found.invariant for found in told(story, at_rest_ms=START_MS + 10 * HOLD_MS)} == {"I12"}
    assert told(story, at_rest_ms=START_MS) == []


def test_check_view_that_doubled_skipped_or_invented_is_told() -> None:
    story = Story()
    story.starts()
    facts = counting_facts({EVENTS: story.raws}, EVENTS.topic)

    assert check_view("v", [(0, 0), (0, 1)], facts) == []
    assert [found.what for found in check_view("v", [(0, 0), (0, 0), (0, 5)], facts)] == [
        "counted a record twice",
        "skipped a record",
        "counted a record that does not count",
    ]


@pytest.mark.parametrize(
    "path", [path for path in LOGS if path.stem != "reader_mid_log"], ids=lambda p: p.stem
)
def test_checkers_own_term_rule_agrees_with_the_golden_logs(path: Any) -> None:
    _, lines = read_log(path)

    facts = read_facts(EVENTS, [raw_record(row) for row in lines])

    assert [fact.counts for fact in facts] == [row["accepted"] for row in lines]
