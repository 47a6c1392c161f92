"""A trace context is carried as it is or not at all, and proves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.headers import event_record, read_event
from schemas.trace_context import TRACEPARENT, is_traceparent, trace_in
from tests.schemas.test_envelope import GATEWAY, draft, raw_of, verifier, with_headers
from tests.schemas.test_headers import BODY, KEY, META
from tests.schemas.test_headers import raw_of as raw_event

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
MALFORMED = [
    "",
    "00",
    TRACE.upper(),
    TRACE + "-x",
    TRACE[:-1],
    "01" + TRACE[2:],
    "ff" + TRACE[2:],
    f"00-{'0' * 32}-b7ad6b7169203331-01",
    f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
    TRACE.replace("-", "_"),
    "x" * 55,
    "ä" * 55,
    TRACE[:-1] + "\n",
]


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_context_is_ignored_on_commands_and_events(text: str) -> None:
    assert not is_traceparent(text)
    (record,) = GATEWAY.sign([draft()])
    assert verifier().read(with_headers(record, traceparent=text.encode())).trace == ""
    fact = event_record(BODY, META, KEY)
    headers = (*fact.headers, (TRACEPARENT, text.encode()))
    assert read_event(raw_event(fact._replace(headers=headers))).meta == META


@given(st.binary(max_size=80))
def test_any_bytes_are_a_context_or_none(value: bytes) -> None:
    found = trace_in({TRACEPARENT: value})
    assert found in ("", value.decode("latin-1"))


def test_context_of_a_draft_is_on_its_record_and_read_back() -> None:
    (record,) = GATEWAY.sign([replace(draft(), trace=TRACE)])
    assert dict(record.headers)[TRACEPARENT] == TRACE.encode()
    assert verifier().read(raw_of(record)).trace == TRACE


def test_context_is_not_signed() -> None:
    (traced,) = GATEWAY.sign([replace(draft(), trace=TRACE)])
    command = verifier().read(with_headers(traced, traceparent=None))
    assert (command.trace, command.command_id) == ("", "c-0")
    (bare,) = GATEWAY.sign([draft()])
    assert verifier().read(with_headers(bare, traceparent=TRACE.encode())).digest == command.digest


def test_record_without_a_context_has_the_bytes_that_it_always_had() -> None:
    assert TRACEPARENT not in dict(event_record(BODY, META, KEY).headers)
    assert TRACEPARENT not in dict(GATEWAY.sign([draft()])[0].headers)


def test_context_of_an_event_is_its_last_header_before_the_signature() -> None:
    record = event_record(BODY, META._replace(trace=TRACE), KEY)
    assert record.headers[-1] == (TRACEPARENT, TRACE.encode())
    assert read_event(raw_event(record)).meta.trace == TRACE
