"""Pages of a list: a cursor is where the last page ended, opaque to whoever carries it."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, dropwhile, islice
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

from projections.tables.columns import R

T = TypeVar("T")
# What a list is ordered by, of one of its items.
Mark = tuple[int | str, ...]

MAX_LIMIT = 500
DEFAULT_LIMIT = 50
# The last millisecond that RFC 3339 can write, and more than any offset in a log.
NUMBER_MAX = 253_402_300_799_999
TEXT_MAX_CHARS = 512
# A NUL, and half of a surrogate pair.
NO_TEXT = re.compile("[\x00\ud800-\udfff]")
OTHER = "the cursor is not one of this list: leave it out to begin again"
TIME_AND_ID = (int, str)


class BadCursor(ValueError):
    """The cursor was not made by this list."""


class PageOf(NamedTuple, Generic[R]):
    """Rows of a list, and where the next page begins (None at the end).

    `order` is the columns that the list is ordered by.
    """

    rows: list[R]
    next_cursor: str | None
    order: tuple[str, ...]

    def cursor_after(self, row: R) -> str:
        """Where the next page begins if this one ends with a row."""
        return cursor_at(tuple(cast("int | str", row[name]) for name in self.order))


# A page of whatever rows.
Page: TypeAlias = PageOf[Any]


def cursor_at(mark: Mark) -> str:
    """The cursor of a page that ends with a mark's item."""
    text = json.dumps(mark, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, kinds: tuple[type, ...] = TIME_AND_ID) -> Mark | None:
    """The mark in a cursor: of the last item of a page.

    Args:
        cursor: as a page gave it; empty or None at the beginning.
        kinds: what the parts of a mark of this list are.

    Raises:
        BadCursor: it is not one.
    """
    if not cursor:
        return None
    try:
        mark = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise BadCursor(OTHER) from error
    is_one = isinstance(mark, list) and tuple(map(type, mark)) == kinds and all(map(_is_made, mark))
    if not is_one:
        raise BadCursor(OTHER)
    return tuple(mark)


def _is_made(part: int | str) -> bool:
    """Whether a list makes such a part. Others are asked of no database: each fails in its own way at them."""
    if isinstance(part, int):
        return abs(part) <= NUMBER_MAX
    return 0 < len(part) <= TEXT_MAX_CHARS and NO_TEXT.search(part) is None


def items_after(items: Iterable[T], order: Callable[[T], Mark], cursor: str | None) -> Iterator[T]:
    """The items of an ordered list behind a cursor, each read when it is asked for.

    Args:
        items: all of them, in the list's order.
        order: what they are ordered by, ascending; parts of the same kinds for all.
        cursor: of the page before.

    Raises:
        BadCursor: it is not one of this list.
    """
    rest = iter(items)
    begin = list(islice(rest, 1))
    mark = read_cursor(cursor, tuple(map(type, order(begin[0])))) if begin else None
    found = chain(begin, rest)
    return found if mark is None else dropwhile(lambda item: order(item) <= mark, found)


def page_of(rows: list[R], limit: int, *order: str) -> PageOf[R]:
    """A page made of up to `limit + 1` rows, by the columns that the list is ordered by."""
    page = PageOf(rows[:limit], None, order)
    return page if len(rows) <= limit else page._replace(next_cursor=page.cursor_after(rows[limit - 1]))


def bounded(limit: int | None) -> int:
    """A limit between 1 and 500; 50 where none was asked for."""
    return DEFAULT_LIMIT if limit is None else max(1, min(limit, MAX_LIMIT))
