"""Shares of a log for several processes."""

from log.shares import shares


def test_shares_are_about_equally_long_and_have_each_part_once() -> None:
    found = shares([50, 0, 30, 21, 20, 10], 2, lambda length: length)

    assert [sum(share) for share in found] == [70, 61]
    assert sorted(length for share in found for length in share) == [10, 20, 21, 30, 50]


def test_no_share_is_empty() -> None:
    assert shares([3], 4, lambda length: length) == [[3]]
    assert shares([0, 0], 2, lambda length: length) == []
