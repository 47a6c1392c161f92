"""Releases by trust: the checker computes each score again, from the words that the log has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from log.places import TopicPartition
from ops.checker.check import Records
from ops.checker.reading import Reading
from schemas.topics import Topics
from tests.ops.checker.builder import DEFINITIONS, EVENTS, Story
from tests.ops.checker.releases import (
    ENOUGH,
    ENOUGH_FOR_NEW,
    KNOWN,
    NEW,
    OF_NEW,
    TAINTED,
    ask,
    decide,
    earned,
    rejected,
    release_by_trust,
    said_of,
    trusted,
)

NOT_GIVEN = ["I1 released by trust that the log does not give"]
AGAINST = ["I1 released by trust against what people had said in its partition"]
NOT_THERE = ["I1 released by trust by facts that the log does not have"]
OTHER_PARTITIONS = ["I1 released by trust by facts of other partitions than the log has"]


def test_release_by_the_score_that_the_log_gives_finds_nothing() -> None:
    assert trusted(earned()) == []
    assert trusted(earned(ENOUGH_FOR_NEW, NEW), ENOUGH_FOR_NEW, trust_class=NEW, history=OF_NEW) == []


@pytest.mark.parametrize(
    "story",
    [
        lambda: earned(ENOUGH - 1),
        lambda: earned(ENOUGH, NEW),
        lambda: earned(by="bot"),
    ],
    ids=["fewer", "of another class", "by the proposer"],
)
def test_release_by_words_that_are_not_there_is_a_violation(story: Callable[[], Story]) -> None:
    assert trusted(story()) == NOT_GIVEN


@pytest.mark.parametrize(
    "against",
    [
        NEW,
        KNOWN,
        "to=text&risk=writes,open_world",
        "to=text&risk=novel:to",
    ],
)
def test_rejection_counts_for_calls_with_the_same_arguments_and_more_new_values(against: str) -> None:
    story = rejected(earned(ENOUGH_FOR_NEW, NEW), against)
    assert trusted(story, ENOUGH_FOR_NEW, trust_class=NEW, history=OF_NEW) == NOT_GIVEN


@pytest.mark.parametrize(
    "against",
    [
        "to=text&risk=novel:file,writes",
        "to=text&risk=novel:file+to,writes",
        "to=text&risk=novel,writes",
        TAINTED,
        "to=@acme.com&risk=writes",
        "file=text&to=text&risk=writes",
    ],
)
def test_rejection_says_nothing_of_calls_with_other_arguments_or_fewer_new_values(against: str) -> None:
    story = rejected(earned(ENOUGH_FOR_NEW, NEW), against)
    assert trusted(story, ENOUGH_FOR_NEW, trust_class=NEW, history=OF_NEW) == []


def test_rejection_in_the_partition_of_the_release_counts_before_trust_has_counted_it() -> None:
    story = earned()
    known = len(story.raws) - 1

    assert trusted(rejected(story), trust={"through": {"0": known}}) == AGAINST


def test_rejection_after_the_release_does_not_count_against_it() -> None:
    story = earned()
    release_by_trust(story)

    assert said_of({EVENTS: rejected(story).raws, DEFINITIONS: story.definitions}) == []


def test_release_is_checked_by_what_its_part_kept_then_and_not_later() -> None:
    story = earned()
    known = len(story.raws) - 1
    for number in range(140):
        ask(story, f"later-{number}")
        decide(story, f"later-{number}")

    assert trusted(story, trust={"through": {"0": known}}) == []


@pytest.mark.parametrize("ahead", [1, 100, 10**9, 10**30])
def test_release_by_what_stands_behind_it_in_its_own_partition_is_a_violation(ahead: int) -> None:
    story = earned(ENOUGH - 1)
    # The proposal of the call comes between.
    assert trusted(story, trust={"through": {"0": len(story.raws) + ahead}}) == NOT_THERE


@pytest.mark.parametrize("through", [{}, {"99": 5}, {"-1": 5}], ids=["none", "not there", "negative"])
def test_release_by_other_partitions_than_the_log_has_is_a_violation(through: dict[str, int]) -> None:
    story = earned()
    whole = {"0": len(story.raws) - 1, **through} if through else {}

    assert trusted(story, trust={"through": whole}) == OTHER_PARTITIONS


OTHER = TopicPartition(EVENTS.topic, 1)


def in_two_partitions(beyond: int) -> Records:
    """A release in one partition, by one fact too few, that cites an offset of another one."""
    story, other = earned(ENOUGH - 1), Story()
    through = {"0": len(story.raws) - 1, "1": len(other.raws) - 1 + beyond}
    release_by_trust(story, trust={"through": through})
    raws = [raw._replace(partition=1) for raw in other.raws]
    return {EVENTS: story.raws, OTHER: raws, DEFINITIONS: story.definitions}


def test_release_by_what_was_written_elsewhere_meanwhile_is_told_and_not_computed() -> None:
    notes: list[str] = []

    assert said_of(in_two_partitions(beyond=0), notes.append) == NOT_GIVEN
    assert notes == []
    assert said_of(in_two_partitions(beyond=1), notes.append) == []
    assert [note.partition(":")[0] for note in notes] == [
        "the score of 1 release by trust was not computed again"
    ]


@pytest.mark.parametrize(("end", "expected"), [(1, NOT_THERE), (2, [])])
def test_release_by_what_no_partition_had_once_all_was_read_is_a_violation(
    end: int, expected: list[str]
) -> None:
    records = in_two_partitions(beyond=1)
    reading = Reading(Topics())
    for tp in (DEFINITIONS, EVENTS, OTHER):
        reading.take(tp, records[tp])
        reading.end(tp)
    reading.ends_at(OTHER, end)

    assert [f"{one.invariant} {one.what}" for one in reading.violations()] == expected
    reading.close()


def test_partition_without_records_is_one_of_the_log() -> None:
    story = earned()
    release_by_trust(story, trust={"through": {"0": len(story.raws) - 1, "1": -1}})

    assert said_of({EVENTS: story.raws, OTHER: [], DEFINITIONS: story.definitions}) == []
    assert said_of({EVENTS: story.raws, DEFINITIONS: story.definitions}) == OTHER_PARTITIONS


def test_words_of_an_account_that_was_withdrawn_are_worth_nothing() -> None:
    story = earned()
    story.publishes("rita", "rita", disabled=True)

    assert trusted(story) == NOT_GIVEN


def test_words_age() -> None:
    story = earned()
    story.now_ms += 40 * 86_400_000

    assert trusted(story) == NOT_GIVEN
