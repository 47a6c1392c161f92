"""A log of any length: what is remembered of it stays on disk, and is the same when it comes back."""

from __future__ import annotations

import tracemalloc

import pytest

from log.places import TopicPartition
from ops.checker import check
from ops.checker.reading import Reading
from ops.checker.scratch import Part, Scratch, Shelf
from schemas.topics import Topics
from tests.projections.histories import (
    LogBuilder,
    consumed,
    judged,
    key_of,
    many_runs,
    proposed,
    released,
    started,
    succeeded,
)

TOPICS = Topics()
EVENTS, COMMANDS = TopicPartition(TOPICS.executions, 0), TopicPartition(TOPICS.commands, 0)
# What is at hand and what SQLite keeps in memory are outside of what may grow.
GROWTH_BYTES_A_RECORD = 30


def test_shelf_brings_back_what_was_changed_in_place() -> None:
    scratch = Scratch()
    shelf: Shelf[list[int]] = Shelf(scratch, "x", list[int], at_hand=2)
    for number in range(9):
        shelf.put(f"a{number}", [number])
        found = shelf.get("a0")
        assert found is not None
        found.append(number)
    assert shelf.get("a0") == [0, *range(9)]
    assert [shelf.get(f"a{number}") for number in (1, 8, 9)] == [[1], [8], None]
    assert [address for address, _ in shelf.items("a")] == [f"a{number}" for number in range(9)]
    scratch.close()


def test_part_has_its_own_names_alone() -> None:
    scratch = Scratch()
    shelf: Shelf[int] = Shelf(scratch, "x", int)
    one, other = Part(shelf, "run-1"), Part(shelf, "run-11")
    one["c"], other["c"] = 1, 2
    assert (one.get("c"), "d" in one, other.setdefault("c", 9), list(one.items())) == (
        1,
        False,
        2,
        [("c", 1)],
    )
    scratch.close()


def test_violations_are_the_same_however_little_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    log = many_runs(LogBuilder(1).claim_all(), 60, at_once=40)
    # The second result of a call that has ended, long after it was touched.
    call = proposed("call-0")
    log.append(key_of("run-0"), [succeeded(call)])
    records = {EVENTS: log.records[0], COMMANDS: []}
    whole = check(records)
    monkeypatch.setattr("ops.checker.scratch.AT_HAND", 3)
    assert check(records) == whole
    assert "ToolCallSucceeded of a call that is 'succeeded'" in {found.what for found in whole}


def test_memory_does_not_grow_with_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.checker.scratch.AT_HAND", 100)
    reading = Reading(TOPICS)
    reading.take(COMMANDS, [])
    log = LogBuilder(1).claim_all()
    for number in range(1_200):
        key, call = key_of(f"run-{number // 4}"), proposed(f"call-{number}", {"n": number})
        if number % 4 == 0:
            log.append(key, [started()])
        log.append(key, [call, judged(call, "allow"), released(call, released_by="policy")])
        log.append(key, [consumed(call)])
        log.append(key, [succeeded(call)])
    records, half = log.records[0], len(log.records[0]) // 2
    reading.take(EVENTS, records[:half])
    tracemalloc.start()
    reading.take(EVENTS, records[half:])
    reading.end(EVENTS)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = len(reading.violations()) * 1_000
    reading.close()
    assert grown - kept < half * GROWTH_BYTES_A_RECORD + 200_000
