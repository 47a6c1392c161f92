"""The records of `placet.trust`: their keys, and that they come back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.canonical import canonical
from schemas.record import RawRecord, UnreadableRecord
from schemas.trust import (
    COUNT_MAX,
    EARLIEST_MS,
    LATEST_MS,
    ClassFact,
    ClassPart,
    TrustCheckpoint,
    TrustPart,
    TrustRecord,
    decode,
    encode,
    part_key,
    read_trust,
    trust_record,
)

COUNT = st.integers(0, COUNT_MAX)
NAME = st.text(st.characters(codec="utf-8"), max_size=20)
PARTS = st.builds(
    TrustPart,
    type=st.just("TrustPart"),
    tenant=NAME,
    project=NAME,
    agent=NAME,
    tool=NAME,
    partition=st.integers(0, 100),
    successes=COUNT,
    failures=COUNT,
    unknowns=COUNT,
    approvals=COUNT,
    edits=COUNT,
    rejections=COUNT,
    last_evidence_at_ms=st.integers(EARLIEST_MS, LATEST_MS),
    through_offset=COUNT,
    record_id=NAME,
    term=COUNT,
    topic_id=NAME,
)
CHECKPOINTS = st.builds(
    TrustCheckpoint,
    type=st.just("TrustCheckpoint"),
    partition=st.integers(0, 100),
    through_offset=COUNT,
    record_id=NAME,
    term=st.integers(-1, 100),
    topic_id=NAME,
    at_ms=st.integers(0, 4_000_000_000_000),
    evidence=COUNT,
    unreadable=COUNT,
    resume_offset=COUNT,
    resume_term=st.integers(-1, 100),
)


FACTS = st.builds(
    ClassFact,
    offset=COUNT,
    at_ms=st.integers(EARLIEST_MS, LATEST_MS),
    kind=st.sampled_from(["approval", "rejection", "failure"]),
    by=st.lists(NAME, max_size=2).map(tuple),
    values=st.lists(NAME, max_size=2).map(tuple),
    numbers=st.just((("amount", 1.0, 2.5),)),
)
CLASSES = st.builds(
    ClassPart,
    type=st.just("ClassPart"),
    tenant=NAME,
    project=NAME,
    agent=NAME,
    tool=NAME,
    trust_class=NAME,
    partition=st.integers(0, 100),
    facts=st.lists(FACTS, min_size=1, max_size=3).map(tuple),
    begins_at=COUNT,
    counted=COUNT,
    through_offset=COUNT,
    record_id=NAME,
    term=COUNT,
    topic_id=NAME,
)


def raw_of(record: TrustRecord) -> RawRecord:
    out = trust_record(record)
    return RawRecord(record.partition, 0, 0, out.key, out.value, out.headers)


@given(PARTS | CHECKPOINTS | CLASSES)
def test_read_trust_gives_back_what_was_written(record: TrustRecord) -> None:
    assert decode(encode(record)) == record
    assert read_trust(raw_of(record)) == record


@given(st.tuples(NAME, NAME, NAME, NAME), st.tuples(NAME, NAME, NAME, NAME))
def test_part_key_of_different_names_differs(
    one: tuple[str, str, str, str], two: tuple[str, str, str, str]
) -> None:
    assert (part_key(*one, 0) == part_key(*two, 0)) == (one == two)


def test_part_key_of_ordinary_names_is_plain() -> None:
    key = part_key("acme", "main", "billing-bot", "mcp:send_money", 3)
    assert key == b"acme/main/billing-bot/mcp:send_money/3"


def test_part_of_before_projects_keeps_its_key() -> None:
    assert part_key("acme", "", "billing-bot", "send_money", 3) == b"acme/billing-bot/send_money/3"


@given(PARTS)
def test_read_trust_under_another_key_or_partition_is_unreadable(part: TrustPart) -> None:
    for raw in (raw_of(part)._replace(key=b"other"), raw_of(part)._replace(partition=part.partition + 1)):
        with pytest.raises(UnreadableRecord):
            read_trust(raw)


@given(CHECKPOINTS)
def test_decode_unknown_field_is_ignored(checkpoint: TrustCheckpoint) -> None:
    assert decode(canonical({**checkpoint.model_dump(), "later": 1}).encode()) == checkpoint


@pytest.mark.parametrize(
    "value",
    [b"", b"[]", b"1", b'"TrustPart"', b'{"type":1}', b'{"type":"TrustPart"}', b"\xff", b'{"type":{}}'],
)
def test_decode_foreign_bytes_is_unreadable(value: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        decode(value)


TIMES = {"TrustPart": "last_evidence_at_ms", "TrustCheckpoint": "at_ms"}


@given(PARTS | CHECKPOINTS, st.sampled_from([EARLIEST_MS - 1, LATEST_MS + 1, 10**15, -(2**53) + 1]))
def test_decode_time_that_nobody_can_write_is_unreadable(record: TrustRecord, at_ms: int) -> None:
    with pytest.raises(UnreadableRecord):
        decode(canonical({**record.model_dump(), TIMES[record.type]: at_ms}).encode())


@given(
    CLASSES, st.sampled_from([{"facts": []}, {"counted": -1}, {"counted": COUNT_MAX + 1}, {"counted": 0.5}])
)
def test_decode_class_without_facts_or_with_a_count_that_is_none_is_unreadable(
    part: ClassPart, wrong: dict[str, object]
) -> None:
    with pytest.raises(UnreadableRecord):
        decode(canonical({**part.model_dump(), **wrong}).encode())


@given(CLASSES, st.sampled_from([EARLIEST_MS - 1, LATEST_MS + 1]))
def test_decode_fact_of_a_time_that_nobody_can_write_is_unreadable(part: ClassPart, at_ms: int) -> None:
    fields = part.model_dump()
    fields["facts"] = [{**fields["facts"][0], "at_ms": at_ms}]
    with pytest.raises(UnreadableRecord):
        decode(canonical(fields).encode())


@given(PARTS, st.sampled_from(["successes", "approvals", "rejections"]), st.sampled_from([-1, COUNT_MAX + 1]))
def test_decode_count_that_is_none_is_unreadable(part: TrustPart, name: str, count: int) -> None:
    with pytest.raises(UnreadableRecord):
        decode(canonical({**part.model_dump(), name: count}).encode())


def test_trust_record_same_content_has_the_same_id() -> None:
    part = TrustPart(
        tenant="t",
        agent="a",
        tool="x",
        partition=0,
        last_evidence_at_ms=0,
        through_offset=1,
        record_id="e",
        term=0,
        topic_id="i",
    )
    assert trust_record(part) == trust_record(part.model_copy())
    later = trust_record(part.model_copy(update={"through_offset": 2}))
    assert dict(later.headers)["ce_id"] != dict(trust_record(part).headers)["ce_id"]
