"""Counting, adding up, and a reader's view of `placet.trust`."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from schemas.canonical import canonical
from schemas.principals import People
from schemas.record import RawRecord, UnreadableRecord
from schemas.trust import (
    COUNT_FORM,
    COUNT_MAX,
    TrustCheckpoint,
    TrustPart,
    TrustRecord,
    class_key,
    trust_record,
)
from services.domain.trust.approved import approved_by
from services.domain.trust.book import KnownTrust, TrustBook
from services.domain.trust.counting import Evidence, Kind, combine, count
from services.domain.trust.reading import trust_value

TOPIC = "topic-id"
CLASS = "risk=money"


def evidence(offset: int, kind: Kind = "successes", partition: int = 0) -> Evidence:
    return Evidence(
        "acme", "main", "bot", "pay", kind, 1000 + offset, partition, offset, f"e{offset}", 3, TOPIC
    )


def part(offset: int, successes: int = 1, partition: int = 0, tool: str = "pay") -> TrustPart:
    return TrustPart(
        tenant="acme",
        project="main",
        agent="bot",
        tool=tool,
        partition=partition,
        successes=successes,
        last_evidence_at_ms=1000 + offset,
        through_offset=offset,
        record_id=f"e{offset}",
        term=3,
        topic_id=TOPIC,
    )


def checkpoint(through: int, evidence: int, partition: int = 0) -> TrustCheckpoint:
    return TrustCheckpoint(
        partition=partition,
        through_offset=through,
        record_id=f"e{through}",
        term=3,
        topic_id=TOPIC,
        at_ms=1000 + through,
        evidence=evidence,
        unreadable=0,
        resume_offset=through + 1,
        resume_term=3,
        form=COUNT_FORM,
    )


def known(book: TrustBook, project: str = "main", agent: str = "bot") -> KnownTrust | None:
    return book.known("acme", project, agent, "pay", CLASS)


class Feed:
    """Gives records to a book at rising offsets of their partition."""

    def __init__(self, book: TrustBook, partitions: int = 1) -> None:
        self.book = book
        self.next = dict.fromkeys(range(partitions), 0)

    def __call__(self, *records: TrustRecord) -> None:
        for record in records:
            out = trust_record(record)
            self.raw(record.partition, out.key, out.value)

    def raw(self, partition: int, key: bytes, value: bytes) -> None:
        offset = self.next[partition]
        self.next[partition] += 1
        self.book.apply(RawRecord(partition, offset, 0, key, value, ()))


def test_count_first_fact_makes_a_part() -> None:
    found = count(None, evidence(7, "rejections"))
    assert (found.rejections, found.evidence, found.through_offset) == (1, 1, 7)
    assert (found.record_id, found.term, found.topic_id, found.last_evidence_at_ms) == ("e7", 3, TOPIC, 1007)


def test_count_same_offset_again_gives_the_same_part() -> None:
    once = count(None, evidence(7))
    assert count(once, evidence(7)) is once
    assert count(once, evidence(6, "failures")) is once


def test_count_later_fact_adds_one_and_moves_on() -> None:
    found = count(count(None, evidence(7)), replace(evidence(9, "edits"), term=8))
    assert (found.successes, found.edits, found.through_offset, found.term) == (1, 1, 9, 8)


def test_combine_sums_and_keeps_the_newest_time() -> None:
    found = combine([part(5, 2), part(9, 3, partition=1)])
    assert (found["successes"], found["failures"], found["last_evidence_at_ms"]) == (5, 0, 1009)
    assert combine([])["last_evidence_at_ms"] == 0


def test_trust_for_before_every_partition_is_read_is_none() -> None:
    book = TrustBook({0: 2, 1: 2}, TOPIC)
    feed = Feed(book, 2)
    feed(part(5, 2), checkpoint(8, 2))
    assert known(book) is None
    feed(part(3, 1, partition=1))
    assert known(book) is None
    feed(checkpoint(4, 1, partition=1))
    found = known(book)
    assert found is not None
    assert (found.counts["successes"], found.through) == (3, {0: 8, 1: 4})


def test_trust_for_source_without_a_checkpoint_is_none() -> None:
    book = TrustBook({0: 0}, TOPIC)
    assert known(book) is None
    assert book.through == {0: -1}


def test_trust_for_old_records_below_the_end_is_none_until_the_end_is_read() -> None:
    book = TrustBook({0: 4}, TOPIC)
    feed = Feed(book)
    feed(part(5, 1), checkpoint(5, 1))
    assert not book.complete
    feed(part(9, 2), checkpoint(9, 2))
    assert book.complete


def test_advance_over_compacted_offsets_completes_the_reading() -> None:
    book = TrustBook({0: 10}, TOPIC)
    Feed(book)(part(5, 1), checkpoint(5, 1))
    book.advance(0, 10)
    assert book.complete


def test_trust_for_agent_without_evidence_is_zero_once_complete() -> None:
    book = TrustBook({0: 0}, TOPIC)
    Feed(book)(checkpoint(5, 0))
    found = known(book, agent="newcomer")
    assert found is not None
    assert found.counts["successes"] == 0


def test_apply_round_without_its_checkpoint_shows_the_round_before() -> None:
    book = TrustBook({0: 0}, TOPIC)
    feed = Feed(book)
    feed(part(5, 1), checkpoint(6, 1), part(9, 2))
    found = known(book)
    assert found is not None
    assert (found.counts["successes"], found.through) == (1, {0: 6})


def test_apply_late_writer_takes_nothing_back() -> None:
    book = TrustBook({0: 0}, TOPIC)
    Feed(book)(part(5, 1), part(9, 2), checkpoint(9, 2), part(5, 1), checkpoint(6, 1))
    found = known(book)
    assert found is not None
    assert (found.counts["successes"], found.through) == (2, {0: 9})


def test_apply_part_lost_to_an_older_value_makes_trust_missing_until_it_is_mended() -> None:
    book = TrustBook({0: 0}, TOPIC)
    feed = Feed(book)
    feed(part(5, 1), checkpoint(9, 2))
    assert known(book) is None
    feed(part(9, 2), checkpoint(12, 2))
    assert known(book) is not None


def test_apply_dropped_checkpoint_makes_trust_missing_until_it_is_counted_again() -> None:
    book = TrustBook({0: 0}, TOPIC)
    feed = Feed(book)
    feed(part(5, 1), checkpoint(5, 1))
    feed.raw(0, checkpoint(5, 1).key, b"")
    assert known(book) is None
    feed(part(5, 1), checkpoint(5, 1))
    assert known(book) is not None


def test_apply_foreign_records_are_refused_and_skipped() -> None:
    book = TrustBook({0: 0}, TOPIC)
    feed = Feed(book)
    other = part(5).model_copy(update={"topic_id": "recreated"})
    for key, value in (
        (b"k", b"not json"),
        (part(5).key, b'{"type":"TrustPart"}'),
        (b"another", trust_record(part(5)).value),
        (other.key, trust_record(other).value),
    ):
        with pytest.raises(UnreadableRecord):
            feed.raw(0, key, value)
    feed(part(5, 1), checkpoint(5, 1))
    assert book.complete


def test_trust_of_one_project_is_nobodys_in_another_nor_is_that_of_before_projects() -> None:
    book = TrustBook({0: 0}, TOPIC)
    feed = Feed(book)
    feed(part(5), part(6).model_copy(update={"project": ""}), checkpoint(9, evidence=2))

    found = [known(book, project) for project in ("main", "side")]

    assert [one and one.counts["successes"] for one in found] == [1, 0]


FACT = {"offset": 1, "at_ms": 1_800_000_000_000, "kind": "approval", "by": ["rita"], "requester": "bot"}
OF_CLASS = {
    "type": "ClassPart",
    "tenant": "acme",
    "project": "main",
    "agent": "bot",
    "tool": "pay",
    "trust_class": CLASS,
    "partition": 0,
    "facts": [FACT],
    "begins_at": 1,
    "counted": 1,
    "through_offset": 5,
    "record_id": "r",
    "term": 3,
    "topic_id": TOPIC,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"facts": []},
        {"facts": [{**FACT, "at_ms": 10**15}]},
        {"facts": [{**FACT, "at_ms": -(10**15)}]},
        {"facts": [{**FACT, "numbers": [["a", 1e308, -1e308]]}]},
        {"facts": [{**FACT, "values": ["v"] * 1_000}, {**FACT, "offset": -7, "kind": "rejection"}]},
        {"counted": -1},
        {"counted": 2**53 - 1},
        {"begins_at": -(2**53) + 1},
    ],
    ids=lambda wrong: ",".join(wrong) or "right",
)
@pytest.mark.parametrize("most", [1, COUNT_MAX - 1, 2**53 - 1])
def test_record_of_a_stranger_is_refused_or_does_no_harm_when_a_call_is_judged(
    wrong: dict[str, Any], most: int
) -> None:
    fields = {**OF_CLASS, **wrong}
    sums = {**part(5).model_dump(), "successes": most}
    key = class_key("acme", "main", "bot", "pay", CLASS, 0)
    book, evidence = TrustBook({0: 3}, TOPIC), min(most + fields["counted"], 2**53 - 1)
    raws = [
        (key, fields),
        (part(5).key, sums),
        (b"_log/0", checkpoint(5, 0).model_dump() | {"evidence": evidence}),
    ]
    for offset, (name, value) in enumerate(raws):
        with suppress(UnreadableRecord):
            book.apply(RawRecord(0, offset, 0, name, canonical(value).encode(), ()))

    if (found := known(book)) is not None:
        people = People().of("acme", "main")
        approved_by(found, 1_800_000_000_000, people)
        assert found.classes
        # As a verdict records it.
        assert canonical(trust_value(found, CLASS, 1_800_000_000_000, people))
