"""Leaving records out changes no count, hides no gap, and begins only where the fold has counted everything."""

import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.record import RawRecord
from services.processors.errors import PositionLost
from services.processors.fold import PartitionFold, is_unused
from services.processors.record_filter import RecordFilter
from tests.processors.history import History
from tests.processors.test_fold import TOPIC, checkpoint_of, counts, folded, history_of

SEEDS = st.integers(0, 2**32)


class Fetched(NamedTuple):
    """The fields of a consumer's record that the filter looks at."""

    offset: int
    value: bytes | None


def record_filter(whole_through: int | None = -1) -> RecordFilter:
    return RecordFilter(is_unused, lambda partition: whole_through)


def fetches(raws: list[RawRecord], rng: random.Random) -> list[list[RawRecord]]:
    """The records in pieces of any length."""
    found, rest = [], list(raws)
    while rest:
        size = rng.randint(1, 12)
        found.append(rest[:size])
        rest = rest[size:]
    return found


def fold_thinned(history: History, fold: PartitionFold, seed: int) -> tuple[int, list[tuple[int, int]]]:
    """Feed a fold with what is kept; how much that was, and the gaps that showed."""
    filtering, given_, gaps = record_filter(fold.needs_through), 0, []
    for piece in fetches(history.raws(fold.start), random.Random(seed)):
        for raw in filtering.drop_unused(0, piece):
            first = filtering.first_of(0, raw.offset)
            if first > fold.position:
                gaps.append((fold.position, first))
            fold.apply(raw, first)
            given_ += 1
    return given_, gaps


@given(SEEDS)
def test_thin_whole_history_counts_the_same_and_shows_no_gap(seed: int) -> None:
    history = history_of(seed)
    plain, thinned = folded(history.raws()), PartitionFold(0, TOPIC)

    given_, gaps = fold_thinned(history, thinned, seed)

    assert gaps == []
    assert given_ < len(history.records)
    assert counts(thinned.parts) == counts(plain.parts)
    assert checkpoint_of(thinned) == checkpoint_of(plain)


@given(SEEDS, st.data())
def test_thin_after_a_restart_finds_the_record_that_was_counted_last(seed: int, data: st.DataObject) -> None:
    history = history_of(seed)
    until = data.draw(st.integers(1, len(history.records)))
    before = folded(history.raws()[:until])
    checkpoint, parts = checkpoint_of(before), before.parts
    again = PartitionFold(0, TOPIC, checkpoint, parts)

    _, gaps = fold_thinned(history, again, seed)

    assert gaps == []
    assert counts(again.parts) == {key: dict(found) for key, found in history.expected.items()}


def unused_and_used() -> tuple[bytes, bytes]:
    history = history_of(1)
    unused = next(record.value for record in history.records if is_unused(record.value))
    used = next(record.value for record in history.records if not is_unused(record.value))
    return unused, used


UNUSED, USED = unused_and_used()


def kept(filtering: RecordFilter, records: list[Fetched]) -> list[tuple[int, int]]:
    """What is kept, each with the first offset that it stands for."""
    return [
        (record.offset, filtering.first_of(0, record.offset)) for record in filtering.drop_unused(0, records)
    ]


def test_thin_keeps_what_is_used_and_the_last_of_a_fetch() -> None:
    values = [UNUSED, UNUSED, USED, UNUSED, UNUSED]
    records = [Fetched(10 + number, value) for number, value in enumerate(values)]

    assert kept(record_filter(), records) == [(12, 10), (14, 13)]


def test_thin_ends_a_stretch_before_a_gap() -> None:
    records = [Fetched(offset, UNUSED) for offset in (10, 11, 14, 15)]

    assert kept(record_filter(), records) == [(11, 10), (15, 14)]


def test_thin_keeps_all_through_what_the_fold_wants_whole() -> None:
    records = [Fetched(offset, UNUSED) for offset in range(10, 16)]

    assert kept(record_filter(12), records) == [(10, 10), (11, 11), (12, 12), (15, 13)]


@pytest.mark.parametrize("value", [b"", None, b"not avro", b"\x00\x00\x00\xff\xff"])
def test_thin_keeps_what_nobody_can_read(value: bytes | None) -> None:
    assert kept(record_filter(), [Fetched(0, value), Fetched(1, UNUSED)]) == [(0, 0), (1, 1)]


def test_thin_keeps_all_while_no_fold_is_loaded() -> None:
    assert kept(record_filter(None), [Fetched(0, UNUSED), Fetched(1, UNUSED)]) == [(0, 0), (1, 1)]


def test_forget_leaves_no_stretch_of_an_earlier_assignment() -> None:
    filtering = record_filter()
    filtering.drop_unused(0, [Fetched(0, UNUSED), Fetched(1, UNUSED)])
    filtering.forget()

    assert filtering.first_of(0, 1) == 1


def test_apply_stretch_that_begins_elsewhere_than_asked_for_is_refused() -> None:
    fold = PartitionFold(0, TOPIC)
    raw = history_of(1).raws()[5]

    with pytest.raises(PositionLost, match="delivered from 3"):
        fold.apply(raw, 3)
