"""Batches that are verified together: every record counts, or does not, as if it were verified alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import schemas.ed25519
import schemas.event_signatures
from schemas.event_signatures import ANYWHERE, CLAIM_TYPE, HEADER, TOGETHER_MAX, TopicSignatures
from schemas.record import Headers, RawRecord
from tests.schemas.test_event_signatures import cancelled, claim, signatures, signed_raws

Change = Callable[[list[RawRecord], int], None]


def _without_proof(raws: list[RawRecord], at: int) -> None:
    raws[at] = raws[at]._replace(headers=raws[at].headers[:-1])


def _without_headers(raws: list[RawRecord], at: int) -> None:
    raws[at] = raws[at]._replace(headers=())


def _other_value(raws: list[RawRecord], at: int) -> None:
    raws[at] = raws[at]._replace(value=raws[at].value + b"\x00")


def _other_partition(raws: list[RawRecord], at: int) -> None:
    raws[at] = raws[at]._replace(partition=1)


def _gone(raws: list[RawRecord], at: int) -> None:
    del raws[at]


def _twice(raws: list[RawRecord], at: int) -> None:
    raws.insert(at, raws[at])


def _moved(raws: list[RawRecord], at: int) -> None:
    raws[at:] = [raw._replace(offset=raw.offset + 1) for raw in raws[at:]]


def _swapped(raws: list[RawRecord], at: int) -> None:
    here, there = raws[at], raws[at - 1]
    raws[at] = there._replace(offset=here.offset)
    raws[at - 1] = here._replace(offset=there.offset)


def _claimed(raws: list[RawRecord], at: int) -> None:
    raws[at] = raws[at]._replace(headers=(CLAIM_TYPE, *raws[at].headers))


def _proof_with(change: Callable[[bytes], bytes]) -> Change:
    def changed(raws: list[RawRecord], at: int) -> None:
        if raws[at].headers and raws[at].headers[-1][0] == HEADER:
            proof = change(raws[at].headers[-1][1])
            raws[at] = raws[at]._replace(headers=(*raws[at].headers[:-1], (HEADER, proof)))

    return changed


CHANGES: tuple[Change, ...] = (
    _without_proof,
    _without_headers,
    _other_value,
    _other_partition,
    _gone,
    _twice,
    _moved,
    _swapped,
    _claimed,
    _proof_with(lambda proof: proof[:-1]),
    _proof_with(lambda proof: proof.replace(b"d1.", b"d2.", 1)),
    _proof_with(lambda proof: proof.replace(b"d1.", b"d1.0", 1)),
    _proof_with(lambda proof: b"d1.0.0.." + proof.rsplit(b".", 1)[1]),
    _proof_with(lambda proof: b"d1.999999999.0.." + proof.rsplit(b".", 1)[1]),
    _proof_with(lambda proof: b"d1.16.0.." + proof.rsplit(b".", 1)[1]),
    _proof_with(lambda proof: proof.replace(b"A", b"B", 1)),
)


@st.composite
def logs(draw: st.DrawFn) -> list[RawRecord]:
    """Batches of all sizes one behind the other, of which some records were changed after they were signed."""
    raws = signed_raws(ANYWHERE, claim())
    for size in draw(st.lists(st.integers(1, 2 * TOGETHER_MAX), min_size=1, max_size=4)):
        base = len(raws)
        raws += signed_raws(base, *(cancelled(number=base + number) for number in range(size)))
    for change in draw(st.lists(st.sampled_from(CHANGES), max_size=3)):
        # Two of two records may be gone by then.
        if raws:
            change(raws, draw(st.integers(0, len(raws) - 1)))
    return raws


def answers(raws: list[RawRecord], chunk: int, *, foresees: bool) -> tuple[list[bool], int, int]:
    found, reader = [], signatures(0)
    for start in range(0, len(raws), chunk):
        chunk_of_raws = raws[start : start + chunk]
        if foresees:
            reader.foresee(chunk_of_raws)
        found += [reader.vouches(raw) for raw in chunk_of_raws]
    return found, reader.forged, reader.displaced


@given(logs(), st.integers(1, 60))
def test_foreseen_records_of_any_log_count_as_each_would_alone(raws: list[RawRecord], chunk: int) -> None:
    assert answers(raws, chunk, foresees=True) == answers(raws, chunk, foresees=False)


def test_whole_batch_is_verified_by_one_signature_before_its_records_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raws = signed_raws(0, *(cancelled(number=number) for number in range(TOGETHER_MAX)))
    reader = signatures(0)
    reader.foresee(raws)
    monkeypatch.setattr(TopicSignatures, "_is_signed", lambda *_: pytest.fail("verified again"))
    monkeypatch.setattr(schemas.ed25519, "crypto_sign_open", lambda *_: pytest.fail("verified again"))
    assert all(reader.vouches(raw) for raw in raws)


@pytest.mark.parametrize("size", [b"999999999", b"16", b"2", b"0"])
def test_forged_size_does_not_keep_the_batch_behind_it_from_being_verified_together(
    size: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = signed_raws(0, cancelled(number=0))
    _proof_with(lambda proof: b"d1." + size + b".0.." + proof.rsplit(b".", 1)[1])(forged, 0)
    raws = signed_raws(1, *(cancelled(number=number) for number in range(1, TOGETHER_MAX)))
    reader = signatures(0)
    reader.foresee([*forged, *raws])

    assert not reader.vouches(forged[0])
    monkeypatch.setattr(TopicSignatures, "_is_signed", lambda *_: pytest.fail("verified again"))
    assert all(reader.vouches(raw) for raw in raws)


def test_records_that_all_claim_to_begin_a_batch_are_hashed_once_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raws = [raw for number in range(40) for raw in signed_raws(number, cancelled(number=number))]
    for at in range(len(raws)):
        _proof_with(lambda proof: b"d1.16.0.." + proof.rsplit(b".", 1)[1])(raws, at)
    hashed: list[bytes] = []

    def leaf(key: bytes, headers: Headers, value: bytes) -> bytes:
        hashed.append(value)
        return b""

    monkeypatch.setattr(schemas.event_signatures, "_leaf", leaf)
    signatures(0).foresee(raws)

    assert len(hashed) <= len(raws)


def test_equal_record_that_was_not_foreseen_is_verified_itself() -> None:
    raws = signed_raws(0, cancelled(number=1), cancelled(number=2))
    reader = signatures(0)
    reader.foresee(raws)
    assert not reader.vouches(raws[0]._replace(value=b"another"))
    assert reader.vouches(raws[0]._replace())


def test_claim_among_other_records_is_not_foreseen() -> None:
    raws = signed_raws(0, cancelled(number=1), claim(after=0))
    reader = signatures(0)
    reader.foresee(raws)
    assert [reader.vouches(raw) for raw in raws] == [True, False]


def test_records_of_a_key_that_was_withdrawn_since_are_not_vouched_for() -> None:
    raws = signed_raws(0, *(cancelled(number=number) for number in range(3)))
    reader = signatures(0)

    reader.foresee(raws)
    assert reader.vouches(raws[0])
    reader.keys = lambda kid: None
    assert not reader.vouches(raws[1])
