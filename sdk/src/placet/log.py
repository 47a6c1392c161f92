"""For consumers of the raw topics: which records of an events partition count.

Each partition has one writer. The log itself decides which one:

1. a `WriterClaimed{claim_id, after}` counts only if `after` is the claim in force where it lands;
2. the term is that record's own offset;
3. any other record counts only if its header `placet_term` equals the claim in force.

A record of a former writer has no effect, so a consumer that skips this rule sees things that never
happened. Works on records of any client; nothing here reads Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

NO_CLAIM = -1
CLAIM_TYPE = "WriterClaimed"
TERM_HEADER = "placet_term"
TYPE_HEADER = "ce_type"


@dataclass(frozen=True)
class Stamp:
    """What the rule needs of one record.

    Attributes:
        offset: of the record.
        term: its `placet_term`; ignored on a claim.
        after: of a `WriterClaimed`, the claim it saw; None on every other record.
    """

    offset: int
    term: int = NO_CLAIM
    after: int | None = None


class HasStamp(Protocol):
    """A record that has a stamp."""

    @property
    def stamp(self) -> Stamp:
        """What the rule needs of it."""


R = TypeVar("R", bound=HasStamp)


def step(claim: int, stamp: Stamp) -> tuple[bool, int]:
    """Apply the rule to the next record of a partition.

    Args:
        claim: in force before it; `NO_CLAIM` at the partition's beginning. A consumer that starts in the middle
            must start with the claim that was in force there, stored together with the offset.
        stamp: of the record.

    Returns:
        Whether the record counts, and the claim in force after it.
    """
    if stamp.after is not None:
        counts = stamp.after == claim
        return counts, stamp.offset if counts else claim
    return claim != NO_CLAIM and stamp.term == claim, claim


def counting(records: Iterable[R], claim: int = NO_CLAIM) -> Iterator[R]:
    """The records of one partition, in offset order, that count (claims included)."""
    for record in records:
        counts, claim = step(claim, record.stamp)
        if counts:
            yield record


def stamp_of(offset: int, headers: Mapping[str, bytes], after: int | None = None) -> Stamp:
    """The stamp of a Kafka record.

    Args:
        offset: of the record.
        headers: its CloudEvents headers.
        after: the field of the decoded body, if the record is a `WriterClaimed`.

    Raises:
        ValueError: a header is missing or is not a number, or a claim came without `after`.
    """
    kind = headers.get(TYPE_HEADER, b"").decode()
    if kind.rpartition(".")[2] == CLAIM_TYPE:
        if after is None:
            raise ValueError(f"the claim at offset {offset} was given without its `after`")
        return Stamp(offset, after=after)
    if TERM_HEADER not in headers:
        raise ValueError(f"the record at offset {offset} has no {TERM_HEADER} header: it is not Placet's")
    return Stamp(offset, term=int(headers[TERM_HEADER]))
