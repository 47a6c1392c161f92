import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placet.log import NO_CLAIM, Stamp, counting, stamp_of, step
from schemas.term import TermRule


@dataclass(frozen=True)
class Record:
    stamp: Stamp
    name: str = ""


def claim(offset: int, after: int, name: str = "") -> Record:
    return Record(Stamp(offset, after=after), name or f"claim {offset}")


def event(offset: int, term: int, name: str) -> Record:
    return Record(Stamp(offset, term), name)


def names(*records: Record, start: int = NO_CLAIM) -> list[str]:
    return [record.name for record in counting(records, start)]


def test_counting_before_any_claim_nothing_counts() -> None:
    assert names(event(0, NO_CLAIM, "a"), event(1, 0, "b")) == []


def test_counting_after_a_newer_claim_the_deposed_writers_records_change_nothing() -> None:
    log = (claim(0, -1), event(1, 0, "a"), claim(2, 0), event(3, 0, "zombie"), event(4, 2, "b"))
    assert names(*log) == ["claim 0", "a", "claim 2", "b"]


def test_counting_two_claims_after_the_same_one_only_the_first_counts() -> None:
    log = (claim(0, -1), claim(1, 0), claim(2, 0), event(3, 2, "loser"), event(4, 1, "winner"))
    assert names(*log) == ["claim 0", "claim 1", "winner"]


def test_counting_of_a_term_that_is_higher_than_the_claim_does_not_count() -> None:
    assert names(claim(0, -1), event(1, 7, "from nowhere")) == ["claim 0"]


def test_counting_from_the_middle_starts_with_the_stored_claim() -> None:
    log = (event(10, 4, "a"), claim(11, 4), event(12, 11, "b"))
    assert names(*log, start=4) == ["a", "claim 11", "b"]
    assert names(*log) == []


@given(st.lists(st.tuples(st.booleans(), st.integers(-1, 12)), max_size=13))
def test_step_on_any_log_agrees_with_the_servers_rule(log: list[tuple[bool, int]]) -> None:
    theirs, ours = TermRule(), NO_CLAIM
    for offset, (is_claim, number) in enumerate(log):
        if is_claim:
            expected = theirs.admits_claim(number, offset)
            counts, ours = step(ours, Stamp(offset, after=number))
        else:
            expected = number == theirs.claim and theirs.claim != NO_CLAIM
            counts, ours = step(ours, Stamp(offset, term=number))
        assert (counts, ours) == (expected, theirs.claim)


def test_stamp_of_a_record_reads_its_headers() -> None:
    assert stamp_of(5, {"ce_type": b"ToolCallProposed", "placet_term": b"3"}) == Stamp(5, 3)
    body = json.loads('{"claim_id": "c", "after": 3}')
    headers = {"ce_type": b"WriterClaimed", "placet_term": b"-1"}
    assert stamp_of(9, headers, body["after"]) == Stamp(9, after=3)


@pytest.mark.parametrize("headers", [{}, {"ce_type": b"WriterClaimed"}, {"placet_term": b"x"}])
def test_stamp_of_a_foreign_record_refuses(headers: dict[str, bytes]) -> None:
    with pytest.raises(ValueError, match=r"header|after|invalid"):
        stamp_of(1, headers)
