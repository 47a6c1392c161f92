"""Pages of a list: a cursor is the end of the last page, opaque to the client."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain, dropwhile, islice
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

from projections.queries.moment import some_of
from projections.tables.columns import R

T = TypeVar("T")
# The values of an item by which a list is ordered.
Mark = tuple[int | str, ...]

MAX_LIMIT = 500
DEFAULT_LIMIT = 50
# The last millisecond that RFC 3339 can write, and more than any offset in a log.
NUMBER_MAX = 253_402_300_799_999
# More than a class of calls takes, the longest text that a list is ordered by.
TEXT_MAX_CHARS = 1_024
# A NUL, and half of a surrogate pair.
NO_TEXT = re.compile("[\x00\ud800-\udfff]")
OTHER = "the cursor is not one of this list: leave it out to begin again"
TIME_AND_ID = (int, str)


class BadCursor(ValueError):
    """The cursor was not made by this list."""


class PageOf(NamedTuple, Generic[R]):
    """Rows of a list, and the start of the next page (None at the end).

    `order` are the columns that the list is ordered by.
    """

    rows: list[R]
    next_cursor: str | None
    order: tuple[str, ...]

    def cursor_after(self, row: R) -> str:
        """The cursor of the next page, if this page ends with `row`."""
        return cursor_at(tuple(cast("int | str", row[name]) for name in self.order))


# A page of rows of any type.
Page: TypeAlias = PageOf[Any]


def cursor_at(mark: Mark) -> str:
    """The cursor of a page whose last item has this mark."""
    text = json.dumps(mark, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, kinds: tuple[type, ...] | None = TIME_AND_ID) -> Mark | None:
    """The mark in a cursor: that of the last item of a page.

    Args:
        cursor: from a page; empty or None at the beginning.
        kinds: the types of the parts of this list's marks; None if they are not known.

    Raises:
        BadCursor: it is not a cursor of this list.
    """
    if not cursor:
        return None
    try:
        mark = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise BadCursor(OTHER) from error
    found = tuple(map(type, mark)) if isinstance(mark, list) else ()
    is_of_a_list = found == kinds if kinds is not None else bool(found) and set(found) <= {int, str}
    if not is_of_a_list or not all(map(_is_made, mark)):
        raise BadCursor(OTHER)
    return tuple(mark)


def _is_made(part: int | str) -> bool:
    """Returns True if a list makes such a part. Other parts reach no database: each fails on them in its own way."""
    if isinstance(part, int):
        return abs(part) <= NUMBER_MAX
    return 0 < len(part) <= TEXT_MAX_CHARS and NO_TEXT.search(part) is None


def items_after(items: Iterable[T], order: Callable[[T], Mark], cursor: str | None) -> Iterator[T]:
    """The items of an ordered list after a cursor, each read only when it is needed.

    Args:
        items: all of them, in the list's order.
        order: the mark of an item, ascending; parts of the same types for all.
        cursor: of the page before.

    Raises:
        BadCursor: it is not a cursor of this list.
    """
    rest = iter(items)
    begin = list(islice(rest, 1))
    # Of a list without items nobody knows the types; what no list makes is refused there, too.
    mark = read_cursor(cursor, tuple(map(type, order(begin[0]))) if begin else None)
    found = chain(begin, rest)
    return found if mark is None else dropwhile(lambda item: order(item) <= mark, found)


def some_after(
    items: Iterable[T], order: Callable[[T], Mark], cursor: str | None, limit: int | None
) -> tuple[list[T], str | None]:
    """A page of an ordered list, and the cursor of the next one.

    Args:
        items: as for `items_after`.
        order: as for `items_after`.
        cursor: of the page before.
        limit: how many at most, and never more than `MAX_LIMIT`; None: all.

    Raises:
        BadCursor: it is not a cursor of this list.
    """
    rest = items_after(items, order, cursor)
    if limit is None:
        return list(rest), None
    count = bounded(limit)
    found = list(islice(rest, count + 1))
    return found[:count], cursor_at(order(found[count - 1])) if len(found) > count else None


def page_of(rows: list[R], limit: int, *order: str) -> PageOf[R]:
    """A page made of up to `limit + 1` rows, by the columns that the list is ordered by."""
    page = PageOf(rows[:limit], None, order)
    return page if len(rows) <= limit else page._replace(next_cursor=page.cursor_after(rows[limit - 1]))


def page_read(rows: Generator[R, None, None], limit: int, *order: str) -> PageOf[R]:
    """As `page_of`, of rows that are read until there are enough, by their number or their size."""
    found, is_cut = some_of(rows)
    page = page_of(found, limit, *order)
    if is_cut and page.next_cursor is None:
        return page._replace(next_cursor=page.cursor_after(found[-1]))
    return page


def bounded(limit: int | None) -> int:
    """A limit between 1 and 500; 50 if none was given."""
    return DEFAULT_LIMIT if limit is None else max(1, min(limit, MAX_LIMIT))
