"""The records of `placet.trust`: their keys, and that they come back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.canonical import canonical
from schemas.record import RawRecord, UnreadableRecord
from schemas.trust import (
    TrustCheckpoint,
    TrustPart,
    TrustRecord,
    decode,
    encode,
    part_key,
    read_trust,
    trust_record,
)

COUNT = st.integers(0, 2**53 - 1)
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
    last_evidence_at_ms=st.integers(0, 4_000_000_000_000),
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


def raw_of(record: TrustRecord) -> RawRecord:
    out = trust_record(record)
    return RawRecord(record.partition, 0, 0, out.key, out.value, out.headers)


@given(PARTS | CHECKPOINTS)
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
