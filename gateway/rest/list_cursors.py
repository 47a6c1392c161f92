"""The cursors of lists: each names its list, so that another list refuses it instead of beginning somewhere."""

from __future__ import annotations

from zlib import crc32

from gateway.problems import Problem
from projections.queries.paging import OTHER
from schemas.refusals import Refusal

_SEPARATOR = "."
# Before the offset in the cursor of a list in the reverse order of the log.
_BACK = "-"
_AFTER_ALL = 2**62


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


def mark_at(offset: int, is_descending: bool) -> str:
    """Return the mark of a list that is in the order of the log, or in the reverse, after the item at an offset."""
    return f"{_BACK}{offset}" if is_descending else str(offset)


def offset_in(text: str | None, is_descending: bool = False) -> int:
    """Return the offset in such a mark, from which the list continues; for its beginning one before all items.

    Raises:
        Problem: 422, the cursor is not of such a list, or of the list in the other order.
    """
    if text is None:
        return _AFTER_ALL if is_descending else -1
    if text.startswith(_BACK) is not is_descending:
        raise Problem(
            Refusal.INVALID, "the cursor is of this list in another order: give it with the same order"
        )
    text = text.removeprefix(_BACK)
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Problem(Refusal.INVALID, "the cursor is not one of this list: leave it out to begin again")
    return int(text)
