"""Batches that land behind the place that they were signed for: they do not count, and are no forgeries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.event_signatures import ANYWHERE
from schemas.term import TermRule
from tests.schemas.test_event_signatures import cancelled, claim, counts, signatures, signed_raws


def test_batch_that_landed_behind_a_rivals_claim_does_not_count_and_is_no_forgery() -> None:
    rule = TermRule(signatures=signatures())
    displaced = [
        raw._replace(offset=raw.offset + 1) for raw in signed_raws(1, cancelled(), cancelled(number=2))
    ]
    assert counts([*signed_raws(ANYWHERE, claim()), *displaced, *signed_raws(4, cancelled())], rule) == [0, 4]
    assert rule.signatures is not None
    assert rule.signatures.forged == 0


def test_batch_displaced_by_a_long_backlog_is_no_forgery_however_long_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rule = TermRule(signatures=signatures())
    batch = signed_raws(1, *[cancelled(number=n) for n in range(40)])
    displaced = [raw._replace(offset=raw.offset + 275) for raw in batch]
    assert counts([*signed_raws(ANYWHERE, claim()), *displaced, *signed_raws(400, cancelled())], rule) == [
        0,
        400,
    ]
    assert rule.signatures is not None
    assert (rule.signatures.forged, rule.signatures.displaced) == (0, 40)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_batch_displaced_behind_what_counted_is_no_forgery() -> None:
    rule = TermRule(signatures=signatures())
    displaced = [
        raw._replace(offset=raw.offset + 5_000) for raw in signed_raws(3, cancelled(), cancelled(number=2))
    ]
    raws = [*signed_raws(ANYWHERE, claim()), *signed_raws(1, cancelled(), cancelled(number=2)), *displaced]
    assert counts(raws, rule) == [0, 1, 2]
    assert rule.signatures is not None
    assert (rule.signatures.forged, rule.signatures.displaced) == (0, 2)


@pytest.mark.parametrize(("reads_all", "level"), [(True, "CRITICAL"), (False, "WARNING")])
def test_only_a_reader_of_all_records_says_that_another_program_writes(
    reads_all: bool, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = replace(signatures(), reads_all=reads_all)
    (raw,) = signed_raws(1, cancelled())
    assert not found.vouches(raw._replace(offset=20_000, value=raw.value + b"x"))
    assert [record.levelname for record in caplog.records] == [level]
    assert ("another program" in caplog.text) == reads_all


def test_batch_displaced_before_a_reader_began_is_no_forgery() -> None:
    # A reader that begins behind the claim has its place from the record's own term.
    displaced = [
        raw._replace(offset=raw.offset + 275) for raw in signed_raws(1, cancelled(), cancelled(number=2))
    ]
    found = signatures()
    assert not any(found.vouches(raw) for raw in displaced)
    assert (found.forged, found.displaced) == (0, 2)
