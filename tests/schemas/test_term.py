"""The term rule on any log: one chain of claims, and nothing of a deposed writer."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from schemas.events.calls import ToolCallCancelled
from schemas.events.log import WriterClaimed
from schemas.record import Event, EventMeta
from schemas.term import NO_CLAIM, TermRule


@dataclass(frozen=True)
class Writer:
    """What one of several workers believes: which claim is in force, and which one is its own."""

    saw: int = NO_CLAIM
    term: int = NO_CLAIM


def event(offset: int, term: int) -> Event:
    return Event(ToolCallCancelled(call_id="c", reason=""), _meta(term), b"k", 0, offset)


def claim(offset: int, after: int, term: int = NO_CLAIM) -> Event:
    body = WriterClaimed(claim_id=f"{offset}", after=after, worker="w")
    return Event(body, _meta(term), b"_log/0", 0, offset)


def accepted(log: list[Event], start: int = NO_CLAIM) -> list[int]:
    rule = TermRule(start)
    return [record.offset for record in log if rule.admits(record)]


def _meta(term: int) -> EventMeta:
    return EventMeta("e", 0, term, 1, "c", "", "acme")


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """What several workers leave behind that read, claim and write as they like, at offsets with gaps."""
    writers = [Writer() for _ in range(draw(st.integers(1, 4)))]
    log: list[Event] = []
    offset = draw(st.integers(0, 5))
    for _ in range(draw(st.integers(0, 25))):
        at = draw(st.integers(0, len(writers) - 1))
        step = draw(st.sampled_from(["read", "claim", "write", "write"]))
        if step == "read":
            writers[at] = Writer(_in_force(log), writers[at].term)
        elif step == "claim":
            log.append(claim(offset, writers[at].saw, writers[at].saw))
            writers[at] = Writer(writers[at].saw, offset)
        else:
            log.append(event(offset, writers[at].term))
        offset += draw(st.integers(1, 3))
    return log


def _in_force(log: list[Event]) -> int:
    """The claim in force at the end of a log, by the definition alone."""
    in_force = NO_CLAIM
    for record in log:
        if isinstance(record.body, WriterClaimed) and record.body.after == in_force:
            in_force = record.offset
    return in_force


@given(logs())
def test_admits_of_any_log_is_the_definition(log: list[Event]) -> None:
    expected = []
    for at, record in enumerate(log):
        before = _in_force(log[:at])
        if isinstance(record.body, WriterClaimed):
            counts = record.body.after == before
        else:
            counts = before != NO_CLAIM and record.meta.term == before
        if counts:
            expected.append(record.offset)
    assert accepted(log) == expected


@given(logs())
def test_accepted_claims_are_one_chain(log: list[Event]) -> None:
    kept = set(accepted(log))
    claims = [(r.offset, r.body.after) for r in log if isinstance(r.body, WriterClaimed) and r.offset in kept]
    assert [after for _, after in claims] == [NO_CLAIM, *(offset for offset, _ in claims)][: len(claims)]


@given(logs(), st.data())
def test_reader_from_any_middle_with_the_stored_claim_sees_the_same(
    log: list[Event], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(log)))
    rule = TermRule()
    before = [record.offset for record in log[:cut] if rule.admits(record)]
    assert before + accepted(log[cut:], rule.claim) == accepted(log)


@given(logs(), st.data())
def test_late_batch_of_a_zombie_changes_nothing(log: list[Event], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(log)))
    in_force = _in_force(log[:at])
    stale = st.integers(NO_CLAIM, 80).filter(lambda number: number != in_force)
    batch = [event(1000 + n, term) for n, term in enumerate(data.draw(st.lists(stale, max_size=4)))]
    zombie_claim = claim(2000, data.draw(stale))
    assert accepted([*log[:at], *batch, zombie_claim, *log[at:]]) == accepted(log)


@given(logs(), st.integers(2, 4))
def test_two_claims_after_the_same_one_only_the_first_counts(log: list[Event], rivals: int) -> None:
    in_force = _in_force(log)
    claims = [claim(1000 + n, in_force) for n in range(rivals)]
    facts = [event(2000 + n, 1000 + n) for n in range(rivals)]
    assert accepted([*log, *claims, *facts]) == [*accepted(log), 1000, 2000]


def test_no_claim_admits_nothing() -> None:
    assert accepted([event(0, NO_CLAIM), event(1, 0)]) == []


def test_claim_wins_after_the_one_in_force_alone_however_large_offsets_are() -> None:
    # Numbers as they are read: two that are equal and over 256 are not one object.
    rule = TermRule(int("1000"))
    assert not rule.admits_claim(int("999"), 2_000)
    assert not rule.admits_claim(int("1001"), 2_000)
    assert rule.claim == 1_000
    assert rule.admits(claim(2_000, int("1000")))
    assert rule.claim == 2_000
    assert not rule.admits(claim(3_000, int("1000")))
    assert rule.admits(event(3_001, int("2000")))
