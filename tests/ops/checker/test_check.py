"""Small logs with one thing wrong each, and the number that the checker must give it."""

from __future__ import annotations

from typing import Any

import pytest

from ops.checker import Violation, check, check_view, counting_facts
from ops.checker.facts import read_facts
from schemas.events import calls as c
from schemas.events.executions import CommandRefused, ExecutionCompleted, ExecutionStarted
from schemas.ids import event_id
from schemas.refusals import Refusal
from tests.golden.test_log import LOGS, raw_record, read_log
from tests.ops.checker.builder import DEFINITIONS, EVENTS, HOLD_MS, START_MS, Story
from tests.ops.checker.wrongs import WRONGS, command_decided_twice, gives_up, impact
from tests.ops.checker.wrongs_of_people import Wrong
from tests.ops.checker.wrongs_of_probes import (
    approved_and_told,
    edited_and_told,
    planted,
    planted_at_once,
)
from tests.ops.checker.wrongs_of_turns import (
    answered,
    decided_by_who_wrote_only_later,
    suspended,
    working,
)


def violations_of(story: Story, *histories: dict[str, Any], at_rest_ms: int | None = None) -> list[Violation]:
    return check({EVENTS: story.raws, DEFINITIONS: story.definitions}, histories, at_rest_ms=at_rest_ms)


def line(op: str, **what: Any) -> dict[str, Any]:
    where = {"tenant": "acme", "project": "main", "execution_id": "x"}
    return {"at": START_MS, "client": "bot", "op": op, **where, **what}


NO = CommandRefused(code=Refusal.NOT_FOUND, command="ProposeToolCall", subject_id="", detail="", by="bot")


def says_no(story: Story, tenant: str, command_id: str) -> str:
    """A command on a run of a tenant that is not there is refused; the event's id."""
    version, place = story.version, len(story.raws)
    story.version = 0
    story.says(NO, command_id=command_id, tenant=tenant, key=f"{tenant}/main/ghost".encode())
    story.version = version
    return event_id(command_id, story.term, place)


def test_check_call_that_went_its_whole_way_finds_nothing() -> None:
    story = Story()
    story.released()
    story.says(story.consumed())
    story.says(story.succeeded())
    effect = line("effect", call_id="c", attempt_id="a", digest=story.digest)

    assert violations_of(story, effect, at_rest_ms=START_MS + 10 * HOLD_MS) == []


def test_check_impact_that_two_people_report_after_the_end_finds_nothing() -> None:
    story = Story()
    story.released()
    story.says(story.consumed())
    story.says(story.succeeded())
    story.says(ExecutionCompleted(result="null", by="bot"))
    story.says(impact())
    story.says(impact(by="rudi"))

    assert violations_of(story) == []


@pytest.mark.parametrize("right", [approved_and_told, edited_and_told, planted_at_once])
def test_check_planted_call_that_is_as_it_should_be_finds_nothing(right: Wrong) -> None:
    story = Story()
    right(story)

    assert violations_of(story, at_rest_ms=START_MS + 10 * HOLD_MS) == []


def test_check_log_that_ends_where_a_planted_call_would_be_told_is_wrong_at_rest_only() -> None:
    story = Story()
    planted(story)
    story.says(story.decision())

    assert violations_of(story) == []
    told = [(one.invariant, one.what) for one in violations_of(story, at_rest_ms=START_MS + 10 * HOLD_MS)]
    assert ("I12", "the hold of a planted call ended, and what it was is not told") in told


def test_check_execution_with_the_key_of_a_definition_finds_nothing() -> None:
    story = Story()
    story.publishes("mia", "mia", roles=["reviewer"])
    started = ExecutionStarted(agent="bot", user="", workspace="", request="", context="{}", by="bot")
    story.says(started, key=b"acme/principal/mia")

    assert violations_of(story) == []


def test_check_attempt_that_an_earlier_version_let_run_a_second_release_finds_nothing() -> None:
    story = Story()
    story.released()
    story.says(story.consumed())
    story.says(c.ToolCallOutcomeUnknown(call_id="c", attempt_id="a", reason="?"))
    story.says(story.hold(hold_id="h2", cause="outcome_unknown", deadline_at_ms=None, on_timeout="wait"))
    story.says(story.decision(hold_id="h2", decision_id="d2"), story.release(decision_id="d2", grant_id="g2"))
    story.says(story.consumed())
    story.says(story.succeeded())

    assert violations_of(story) == []


def test_check_attempt_that_consumes_one_release_twice_is_told() -> None:
    story = Story()
    story.released()
    for attempt in ("a", "b", "a"):
        story.says(story.consumed(attempt))

    found = [(violation.invariant, violation.what) for violation in violations_of(story)]
    assert found.count(("I2", "the same attempt consumed one release twice")) == 1


@pytest.mark.parametrize(("wrong", "number"), WRONGS, ids=[wrong.__name__ for wrong, _ in WRONGS])
def test_check_tells_what_is_wrong_by_its_number(wrong: Wrong, number: str) -> None:
    story = Story()
    wrong(story)

    assert number in {violation.invariant for violation in violations_of(story)}


def test_check_turn_that_was_lost_once_and_answered_finds_nothing() -> None:
    story = Story()
    answered(story)

    assert violations_of(story) == []


def test_check_decision_of_somebody_who_wrote_only_after_the_hold_had_opened_finds_nothing() -> None:
    story = Story()
    decided_by_who_wrote_only_later(story)

    assert violations_of(story) == []


def test_check_quorum_of_two_people_one_of_them_named_by_the_rule_finds_nothing() -> None:
    story = Story()
    story.publishes("mia-m", "mia", "mia@old", roles=["treasurer"])
    story.held(quorum=2, roles=("treasurer",), reviewers=("rita",), excluded=("eve",), exclude_requester=True)
    story.says(story.decision(by="mia@old", roles=("treasurer",), resolves=False))
    story.says(story.decision(), story.release())

    assert violations_of(story) == []


def test_check_vote_of_a_person_whose_other_account_had_voted_and_was_taken_finds_nothing() -> None:
    story = Story()
    story.publishes("mia-m", "mia", "mia@old", roles=["reviewer"])
    story.held(quorum=2)
    story.says(story.decision(by="mia", resolves=False, person="mia-m"))
    story.publishes("mia-m", "mia@old", roles=["reviewer"])
    story.says(story.decision(by="mia@old", resolves=False, person="mia-m"))
    story.says(story.decision(), story.release())

    assert violations_of(story) == []


@pytest.mark.parametrize("wrong", [wrong for wrong, number in WRONGS if number == "I10"])
def test_check_wrongs_of_authority_are_told_as_that_alone(wrong: Wrong) -> None:
    story = Story()
    wrong(story)

    assert {violation.invariant for violation in violations_of(story)} == {"I10"}


@pytest.mark.parametrize(
    "document", [{}, {"roles": ["analyst"]}, {"agents": ["bot"]}], ids=["same", "no role", "own agent"]
)
def test_check_run_on_a_verdict_that_asks_nobody_by_then_finds_nothing(document: dict[str, Any]) -> None:
    story = Story()
    story.publishes("rita-r", "rita", roles=["reviewer"])
    story.held(exclude_requester=True)
    story.says(story.decision(), story.release())
    story.publishes("rita-r", "rita", **{"roles": ["reviewer"], **document})
    story.says(story.verdict("allow"), story.consumed())
    story.says(story.succeeded())

    assert violations_of(story) == []


def test_check_vote_of_a_requester_where_requesters_may_decide_finds_nothing() -> None:
    story = Story()
    story.publishes("rita-r", "rita", roles=["reviewer"])
    story.released()
    story.publishes("rita-r", "rita", roles=["reviewer"], agents=["bot"])
    story.says(story.consumed())

    assert violations_of(story) == []


@pytest.mark.parametrize(("writers", "trials"), [(3, 0), (2, 1), (1, 2), (0, 3)])
def test_check_command_given_up_after_three_writers_or_children_had_tried_it_finds_nothing(
    writers: int, trials: int
) -> None:
    story = Story()
    story.starts()
    for _ in range(writers):
        story.tries_alone(7)
    gives_up(story, trials)

    assert violations_of(story) == []


@pytest.mark.parametrize("writers", [3, 0], ids=["by writers", "in children"])
def test_check_command_given_up_by_a_version_that_did_not_tell_its_trials_finds_nothing(writers: int) -> None:
    """The first version had no children to try in; later ones had, and recorded the same fields."""
    story = Story()
    story.starts()
    for _ in range(writers):
        story.tries_alone(7)
    gives_up(story, trials=-1)

    assert violations_of(story) == []


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

    assert violations_of(story) == []


def test_check_command_decided_twice_is_told() -> None:
    story = Story()
    command_decided_twice(story)

    found = check({EVENTS: story.raws, EVENTS._replace(topic="placet.commands"): []})

    assert [violation.invariant for violation in found] == ["I2"]


def test_check_refusal_that_was_forgotten_and_said_again_finds_nothing() -> None:
    """Where there is no run only so many commands of each sender are remembered."""
    story = Story()
    says_no(story, "acme", "again")
    story.starts()
    says_no(story, "acme", "again")

    assert check({EVENTS: story.raws, EVENTS._replace(topic="placet.commands"): []}) == []


def test_check_refusal_in_a_run_that_is_said_again_is_told() -> None:
    story = Story()
    story.starts()
    for command_id in ("again", "another", "again"):
        story.says(NO, command_id=command_id)

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

    assert violations_of(story) == []


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

    assert [violation.invariant for violation in violations_of(story, history)] == [number]


def test_check_history_whose_optional_fields_are_null_is_one_without_them() -> None:
    story = Story()
    story.released()
    mine = says_no(story, "acme", "mine")
    unknown = {"project": None, "execution_id": None, "command_digest": None}
    ack = line("ack", command_id="mine", events=[mine], **unknown)
    decided = line("decide", command_id="command-3", digest="0" * 64, **unknown)

    found = violations_of(story, ack, decided)
    assert [violation.invariant for violation in found] == ["I1"]


def test_check_same_command_id_on_a_key_of_another_tenant_is_another_command() -> None:
    """Services choose their ids, and no tenant knows those of another."""
    story = Story()
    story.released()
    mine, theirs = (says_no(story, tenant, "mine") for tenant in ("acme", "evil"))
    ack = line("ack", command_id="mine", events=[mine])
    decided = line("decide", command_id="command-3", digest="0" * 64, execution_id="y")

    assert violations_of(story, ack, decided) == []
    found = violations_of(story, {**ack, "events": [theirs]})
    assert [violation.invariant for violation in found] == ["I9"]


def test_check_effect_twice_by_one_attempt_is_told() -> None:
    story = Story()
    story.released()
    story.says(story.consumed())
    effect = line("effect", call_id="c", attempt_id="a", digest=story.digest)

    assert [violation.invariant for violation in violations_of(story, effect, effect)] == ["I2"]


@pytest.mark.parametrize("part", ["held", "released", "consumed"])
def test_check_what_waits_for_nobody_at_rest_is_told(part: str) -> None:
    story = Story()
    story.held() if part == "held" else story.released()
    if part == "consumed":
        story.says(story.consumed())

    assert {found.invariant for found in violations_of(story, at_rest_ms=START_MS + 10 * HOLD_MS)} == {"I12"}
    assert violations_of(story, at_rest_ms=START_MS) == []


@pytest.mark.parametrize("part", [working, suspended])
def test_check_turn_that_is_not_taken_up_again_at_rest_is_told(part: Wrong) -> None:
    story = Story()
    part(story)
    if part is suspended:
        story.says(story.decision(), story.release(), story.consumed(), story.succeeded())

    assert {found.invariant for found in violations_of(story, at_rest_ms=START_MS + 10 * HOLD_MS)} == {"I12"}


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
