"""The cursors of lists: each names its list, so that another list refuses it instead of beginning somewhere."""

from __future__ import annotations

from zlib import crc32

from gateway.problems import Problem
from projections.queries.paging import OTHER
from schemas.refusals import Refusal

_SEPARATOR = "."


def cursor_for(path: str, mark: str | None) -> str | None:
    """Return the cursor of the list at a path that continues at a mark; None at the list's end."""
    return None if mark is None else f"{_name(path)}{_SEPARATOR}{mark}"


def mark_in(path: str, cursor: str | None) -> str | None:
    """Return the mark in a cursor of the list at a path.

    Raises:
        Problem: 422, it is another list's.
    """
    name, separator, mark = (cursor or "").partition(_SEPARATOR)
    if not separator:
        # An earlier version's, which names no list.
        return cursor
    if name != _name(path):
        raise Problem(Refusal.INVALID, OTHER)
    return mark


def _name(path: str) -> str:
    return f"{crc32(path.encode()):08x}"


def offset_in(text: str | None) -> int:
    """Return the offset in the cursor of a list that is in the order of the log; -1 for its beginning.

    Raises:
        Problem: 422, the cursor is not of such a list.
    """
    if text is None:
        return -1
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Problem(Refusal.INVALID, "the cursor is not one of this list: leave it out to begin again")
    return int(text)
