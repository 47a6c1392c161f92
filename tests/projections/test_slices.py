"""Batches are cut between commands."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from projections.slices import slices
from schemas.record import RawRecord


def records(lengths: list[int]) -> list[RawRecord]:
    commands = [b"c%d" % number for number, length in enumerate(lengths) for _ in range(length)]
    return [
        RawRecord(0, offset, 0, b"k", b"v", (("placet_command_id", command),))
        for offset, command in enumerate(commands)
    ]


@given(st.lists(st.integers(1, 5)), st.integers(1, 7))
def test_slices_keep_order_and_never_part_a_command(lengths: list[int], size: int) -> None:
    whole = records(lengths)
    pieces = list(slices(whole, size))
    assert [raw for piece in pieces for raw in piece] == whole
    commands = [{raw.headers[0][1] for raw in piece} for piece in pieces]
    assert all(not one & other for one, other in pairwise(commands))
    assert all(len(piece) < size + 5 for piece in pieces)


def test_slices_of_records_without_a_command_are_cut_anywhere() -> None:
    foreign = [RawRecord(0, offset, 0, b"", b"", ()) for offset in range(10)]
    assert [len(piece) for piece in slices(foreign, 4)] == [4, 4, 2]
