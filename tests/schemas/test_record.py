"""What is counted before a batch is cut must never be less than what Kafka counts."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from schemas.record import OutRecord, RawRecord, UnreadableRecord, headers_by_name, raw_record

NAMES = st.text(st.characters(codec="ascii"), max_size=20)


def kafka_size_bytes(record: OutRecord, offset_delta: int) -> int:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10**9,
    )
    builder.append(0, 0, b"", b"", [])
    before = builder.size()
    builder.append(offset_delta, 2**40, record.key, record.value, list(record.headers))
    return int(builder.size() - before)


@given(
    st.binary(max_size=300),
    st.binary(max_size=300),
    st.lists(st.tuples(NAMES, st.binary(max_size=200)), max_size=15),
    st.integers(1, 2**31 - 1),
)
def test_size_is_at_least_kafkas(
    key: bytes, value: bytes, headers: list[tuple[str, bytes]], offset_delta: int
) -> None:
    record = OutRecord(key, value, tuple(headers))
    assert record.size_bytes() >= kafka_size_bytes(record, offset_delta)


def test_headers_by_name_leaves_out_what_has_no_value() -> None:
    foreign = (("ce_id", b"1"), ("traceparent", None))
    assert headers_by_name(foreign) == {"ce_id": b"1"}  # type: ignore[arg-type]


def test_headers_by_name_takes_foreign_repeats() -> None:
    assert headers_by_name((("baggage", b"a"), ("baggage", b"b"), ("ce_id", b"1")))["ce_id"] == b"1"


@pytest.mark.parametrize("name", ["ce_id", "placet_term", "placet_envelope"])
def test_headers_by_name_of_our_header_twice_is_unreadable(name: str) -> None:
    with pytest.raises(UnreadableRecord, match="twice"):
        headers_by_name(((name, b"1"), ("other", b""), (name, b"1")))


class Consumed(NamedTuple):
    """What a consumer hands over of a producer that left out whatever may be left out."""

    partition: int = 3
    offset: int = 7
    timestamp: int = 1_780_000_000_000
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def test_raw_record_of_what_a_producer_left_out_is_empty_for_every_reader() -> None:
    raw = raw_record(Consumed(headers=(("null", None), ("set", b"1"))))
    assert raw == RawRecord(3, 7, 1_780_000_000_000, b"", b"", (("null", b""), ("set", b"1")))


def test_raw_record_keeps_what_is_there() -> None:
    raw = raw_record(Consumed(key=b"k", value=b"v", headers=(("a", b"1"),)))
    assert (raw.key, raw.value, raw.headers) == (b"k", b"v", (("a", b"1"),))
