"""The rows of a text at a terminal, none of which the terminal breaks once more.

Terminals differ in how wide a character is, and an agent can choose those about which they do. So each counts as the
widest that any of them makes it; rows are then rather too short than too long.
"""

from __future__ import annotations

import unicodedata

# They stand on the character before them; all others take a column at least.
_ON_ANOTHER = frozenset({"Mn", "Me", "Cf"})
# The tones of a skin: alone they are an emoji, after one a part of it.
_TONES = range(0x1F3FB, 0x1F400)


def rows_of(text: str, width: int, *, at_words: bool) -> list[str]:
    """The rows of a text.

    Args:
        text: safe to show.
        width: of a row, 2 at least.
        at_words: break between words where one can, and drop the space there.
    """
    return [row for line in text.split("\n") for row in _rows(line, width, at_words)]


def width_of(char: str) -> int:
    """The most columns that a character takes at any terminal."""
    from rich.cells import get_character_cell_size

    if ord(char) in _TONES:
        return 2
    found = get_character_cell_size(char)
    return found if unicodedata.category(char) in _ON_ANOTHER else max(found, 1)


def _rows(line: str, width: int, at_words: bool) -> list[str]:
    rows, row, used = [], "", 0
    for char in line:
        size = width_of(char)
        if used + size > width:
            done, row = _broken(row, char) if at_words else (row, "")
            rows.append(done)
            used = sum(map(width_of, row))
            if at_words and char == " " and not row:
                continue
        row, used = row + char, used + size
    return [*rows, row.rstrip() if at_words else row]


def _broken(row: str, char: str) -> tuple[str, str]:
    """A full row before its last word, and that word, which goes on with `char`."""
    head, _, word = row.rpartition(" ")
    if char == " " or not head.strip():
        return row.rstrip(), ""
    return head.rstrip(), word
