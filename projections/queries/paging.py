"""Pages of a list: a cursor is where the last page ended, opaque to whoever carries it."""

import base64
import binascii
import json
import re
from typing import NamedTuple

from projections.folds.rows import Row

MAX_LIMIT = 500
DEFAULT_LIMIT = 50
# The last millisecond that RFC 3339 can write.
AT_MAX_MS = 253_402_300_799_999
OTHER = "the cursor is not one of this list: leave it out to begin again"
_ROW_ID = re.compile(r"[\x20-\x7e]{1,512}")


class BadCursor(ValueError):
    """The cursor was not made by this list."""


class Page(NamedTuple):
    """Rows of a list, and where the next page begins (None at the end).

    `order` is the columns that the list is ordered by, its time and its id.
    """

    rows: list[Row]
    next_cursor: str | None
    order: tuple[str, str]

    def cursor_after(self, row: Row) -> str:
        """Where the next page begins if this one ends with a row."""
        at, row_id = self.order
        text = json.dumps([row[at], row[row_id]], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


class Mark(NamedTuple):
    """The last row of a page: its time (ms) and its id."""

    at_ms: int
    id: str


def read_cursor(cursor: str | None) -> Mark | None:
    """The mark in a cursor.

    Raises:
        BadCursor: it is not one.
    """
    if not cursor:
        return None
    try:
        at_ms, row_id = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise BadCursor(OTHER) from error
    # What no list makes is asked of no database: each fails in its own way at what it cannot hold.
    is_time = type(at_ms) is int and 0 <= at_ms <= AT_MAX_MS
    if not is_time or not isinstance(row_id, str) or _ROW_ID.fullmatch(row_id) is None:
        raise BadCursor(OTHER)
    return Mark(at_ms, row_id)


def page_of(rows: list[Row], limit: int, at: str, row_id: str) -> Page:
    """A page made of up to `limit + 1` rows, by the columns that the list is ordered by."""
    page = Page(rows[:limit], None, (at, row_id))
    return page if len(rows) <= limit else page._replace(next_cursor=page.cursor_after(rows[limit - 1]))


def bounded(limit: int | None) -> int:
    """A limit between 1 and 500; 50 where none was asked for."""
    return DEFAULT_LIMIT if limit is None else max(1, min(limit, MAX_LIMIT))
