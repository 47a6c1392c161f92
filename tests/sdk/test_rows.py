"""Rows of a text at a terminal."""

import unicodedata

import pytest

from placet.cli.rows import rows_of, width_of


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("", 10, [""]),
        ("one two three", 9, ["one two", "three"]),
        ("one two", 7, ["one two"]),
        ("one  two", 4, ["one", "two"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("a bcdefgh", 3, ["a", "bcd", "efg", "h"]),
        ("first\n\nthird", 9, ["first", "", "third"]),
        ("漢字漢字", 2, ["漢", "字", "漢", "字"]),
        ("漢字漢字", 5, ["漢字", "漢字"]),
    ],
)
def test_rows_break_between_words_where_they_can(text: str, width: int, rows: list[str]) -> None:
    assert rows_of(text, width, at_words=True) == rows


@pytest.mark.parametrize("text", ["", "one  two   three ", "  indented", "漢字 漢字", "x" * 30])
@pytest.mark.parametrize("width", [2, 3, 7, 40])
def test_exact_rows_lose_nothing_and_fit(text: str, width: int) -> None:
    rows = rows_of(text, width, at_words=False)
    assert "".join(rows) == text
    assert all(sum(map(width_of, row)) <= width for row in rows)


def test_no_character_that_takes_a_column_somewhere_counts_as_none() -> None:
    without = [chr(code) for code in range(0x110000) if width_of(chr(code)) == 0]
    assert {unicodedata.category(char) for char in without} <= {"Mn", "Me", "Cf"}
