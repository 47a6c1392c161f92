"""A record that nobody can read changes nothing; one in the term in force that no decider signed is told of."""

from __future__ import annotations

import pytest

from log.places import TopicPartition
from ops.checker.facts import FactReader
from schemas.event_signatures import TopicSignatures
from schemas.events.log import WriterClaimed
from schemas.headers import event_record
from schemas.record import EventMeta, OutRecord, RawRecord

TP = TopicPartition("placet.executions", 0)
META = EventMeta("e", 1_000, 0, 1, "c", "", "placet")


def at(offset: int, record: OutRecord) -> RawRecord:
    return RawRecord(TP.partition, offset, 1_000, record.key, record.value, record.headers)


@pytest.mark.parametrize(
    ("term", "since", "told"),
    [(0, 1, [1]), (7, 1, []), (0, 2, [])],
    ids=["in force", "of another term", "before signing was switched on"],
)
def test_unreadable_record_is_told_of_in_the_term_in_force(term: int, since: int, told: list[int]) -> None:
    forged: list[int] = []
    reader = FactReader(
        TP,
        TopicSignatures(TP.topic, lambda kid: None, (since,)),
        lambda tp, raw: forged.append(raw.offset),
    )
    claim = event_record(WriterClaimed(claim_id="w", after=-1, worker="w"), META, b"placet")
    foreign = event_record(
        WriterClaimed(claim_id="w", after=-1, worker="w"), META._replace(term=term), b"placet"
    )
    facts = list(reader.read([at(0, claim), at(1, foreign._replace(value=b"\xffnothing"))]))
    assert [fact.counts for fact in facts] == [True]
    assert forged == told
