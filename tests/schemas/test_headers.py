"""An event's headers are the record's own: read back the same, and never believed half."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas import codec
from schemas.commands import ClaimHold
from schemas.events.holds import HoldClaimed
from schemas.events.log import WriterAlive
from schemas.headers import epoch_ms, event_record, read_event, read_labels, rfc3339
from schemas.message import Message
from schemas.record import EventMeta, OutRecord, RawRecord, UnreadableRecord
from tests.schemas.strategies import LONG, TEXT, any_message, raw_records

COUNTS = st.integers(-1, 10**18 - 1)
# The years that RFC 3339 can write.
TIMES_MS = st.integers(
    epoch_ms("0001-01-01T00:00:00Z") + 999 * 366 * 86_400_000, epoch_ms("9999-12-31T23:59:59.999Z")
)
TRACES = st.just("") | st.from_regex(r"\A00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}\Z")
METAS = st.builds(
    EventMeta,
    event_id=TEXT,
    at_ms=TIMES_MS,
    term=COUNTS,
    version=COUNTS,
    command_id=TEXT,
    command_digest=TEXT,
    tenant=TEXT,
    command_offset=COUNTS,
    trace=TRACES,
)
META = EventMeta("e-1", 1_760_000_000_123, 55, 3, "c-1", "d" * 32, "acme", 17)
BODY = HoldClaimed(hold_id="h-1", by="ann")
KEY = b"acme/default/e-1"


def raw_of(record: OutRecord) -> RawRecord:
    return RawRecord(3, 99, 0, record.key, record.value, record.headers)


def with_header(name: str, value: bytes | None) -> RawRecord:
    record = event_record(BODY, META, KEY)
    kept = tuple(pair for pair in record.headers if pair[0] != name)
    return raw_of(record._replace(headers=kept if value is None else (*kept, (name, value))))


@given(any_message().filter(lambda body: codec.SUBJECTS[type(body)].startswith("placet.events.")), METAS)
def test_read_event_of_an_event_record_is_the_event(body: Message, meta: EventMeta) -> None:
    event = read_event(raw_of(event_record(body, meta, KEY)))
    assert (event.body, event.meta, event.key) == (body, meta, KEY)
    assert (event.partition, event.offset, event.type) == (3, 99, type(body).__name__)


@given(
    raw_records(dict(event_record(BODY, META, KEY).headers), st.binary(max_size=20), st.binary(max_size=60))
)
def test_read_event_of_any_record_is_an_event_or_unreadable(raw: RawRecord) -> None:
    try:
        read_event(raw)
    except UnreadableRecord:
        return


@given(
    raw_records(
        dict(event_record(BODY, META, KEY).headers),
        st.sampled_from([KEY, b"", b"other"]),
        st.just(codec.encode(BODY)),
    )
)
def test_read_event_with_damaged_headers_is_an_event_or_unreadable(raw: RawRecord) -> None:
    try:
        event = read_event(raw)
    except UnreadableRecord:
        return
    assert event.body == BODY
    assert -(2**63) <= event.meta.term < 2**63


REQUIRED = [
    "ce_id",
    "ce_type",
    "ce_subject",
    "ce_time",
    "placet_term",
    "placet_version",
    "placet_command_id",
    "placet_command_digest",
    "placet_command_offset",
    "placet_tenant",
]


@pytest.mark.parametrize("name", REQUIRED)
def test_read_event_without_a_header_is_unreadable(name: str) -> None:
    with pytest.raises(UnreadableRecord) as caught:
        read_event(with_header(name, None))
    assert caught.value.reason == "malformed"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ce_id", b"\xff"),
        ("ce_type", b"placet.events.HoldUnclaimed"),
        ("ce_type", b"placet.commands.ClaimHold"),
        ("ce_subject", b"acme/default/other"),
        ("ce_time", b"yesterday"),
        ("ce_time", b"2026-01-31T09:30:00"),
        ("ce_time", b"2026-13-31T09:30:00Z"),
        ("ce_time", b"2026-W05-1T09:30:00Z"),
        ("ce_time", b"20260131T093000Z"),
        ("ce_time", b"2026-01-31T09:30:60Z"),
        ("ce_time", "٢٠٢٦-01-31T09:30:00Z".encode()),
        ("placet_term", b""),
        ("placet_term", b"-"),
        ("placet_term", b"--1"),
        ("placet_term", b"1.0"),
        ("placet_term", b" 1"),
        ("placet_term", b"1_0"),
        ("placet_term", b"+1"),
        ("placet_term", b"9" * 19),
        ("placet_version", b"9" * 5000),
        ("placet_version", "٣".encode()),
        ("placet_command_offset", b"0x1"),
        ("placet_tenant", b"\xed\xa0\x80"),
    ],
)
def test_read_event_with_a_malformed_header_is_unreadable(name: str, value: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        read_event(with_header(name, value))


def test_read_event_without_a_key_is_unreadable() -> None:
    record = event_record(BODY, META, b"")
    with pytest.raises(UnreadableRecord, match="key"):
        read_event(raw_of(record))


def test_read_event_of_a_command_is_unreadable() -> None:
    record = event_record(BODY, META, KEY)._replace(value=codec.encode(ClaimHold(hold_id="h")))
    with pytest.raises(UnreadableRecord, match="a command is on an events topic"):
        read_event(raw_of(record))


def test_read_event_with_foreign_headers_is_read() -> None:
    record = event_record(BODY, META, KEY)
    traced = record._replace(headers=(("traceparent", b"00-1"), *record.headers, ("traceparent", b"\xff")))
    assert read_event(raw_of(traced)).body == BODY


def test_event_record_carries_the_cloudevents_attributes() -> None:
    headers = dict(event_record(WriterAlive(commands_through=4), META, b"_log/3").headers)
    assert headers["ce_specversion"] == b"1.0"
    assert headers["ce_type"] == b"placet.events.WriterAlive"
    assert headers["ce_source"] == b"/placet/decider"
    assert headers["ce_time"] == b"2025-10-09T08:53:20.123Z"


def test_rfc3339_of_an_early_year_has_four_digits() -> None:
    early = epoch_ms("0696-10-25T10:37:46.996Z")
    assert rfc3339(early) == "0696-10-25T10:37:46.996Z"


@given(TIMES_MS)
def test_epoch_ms_of_rfc3339_is_the_time(at_ms: int) -> None:
    assert epoch_ms(rfc3339(at_ms)) == at_ms


@given(st.datetimes(dt.datetime(1000, 1, 1)), st.integers(-23 * 60, 23 * 60))  # noqa: DTZ001 - a zone is added
def test_epoch_ms_of_any_zone_is_the_same_moment(moment: dt.datetime, offset_minutes: int) -> None:
    zone = dt.timezone(dt.timedelta(minutes=offset_minutes))
    text = moment.replace(tzinfo=zone).isoformat()
    assert epoch_ms(text) == int(
        (moment.replace(tzinfo=zone) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
    )


@given(st.text(max_size=40))
@example("2026-01-31t09:30:00z")
@example("2026-01-31 09:30:00Z")
def test_epoch_ms_of_anything_else_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        epoch_ms(text)


@given(LONG)
def test_read_event_of_any_term_in_range_is_exact(term: int) -> None:
    raw = with_header("placet_term", b"%d" % term)
    if abs(term) < 10**18:
        assert read_event(raw).meta.term == term
    else:
        with pytest.raises(UnreadableRecord):
            read_event(raw)


def test_labels_are_the_type_and_the_meta_whatever_the_body_is() -> None:
    raw = raw_of(event_record(BODY, META, KEY))
    assert read_labels(raw) == ("placet.events.HoldClaimed", META)
    assert read_labels(raw._replace(value=b"foreign")) == ("placet.events.HoldClaimed", META)
    without = raw._replace(headers=tuple(one for one in raw.headers if one[0] != "ce_type"))
    assert read_labels(without) == ("", META)
