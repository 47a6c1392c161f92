"""What a list's cursor may say: only what a list can have made."""

from __future__ import annotations

import base64

import pytest

from projections.queries.paging import (
    MAX_LIMIT,
    BadCursor,
    cursor_at,
    items_after,
    page_of,
    read_cursor,
    some_after,
)
from schemas.call_history import CallHistory
from schemas.risk_score import WEIGHTS
from services.domain.policy.trust_class import MAX_CHARS, class_of


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_read_cursor_of_a_page_is_its_last_row() -> None:
    rows = [{"at_ms": 5 + number, "id": f"h-{number}"} for number in range(3)]
    cursor = page_of(rows, 2, "at_ms", "id").next_cursor
    assert read_cursor(cursor) == (6, "h-1")


@pytest.mark.parametrize(
    "text",
    [
        '[1180591620717411303424,"x"]',
        '[true,"x"]',
        '[1e3,"x"]',
        '[1,"\\ud800"]',
        '[1,"a\\u0000b"]',
        '[1,""]',
        '[1,"x","y"]',
        "[1]",
        "7",
        "[" * 100_000,
        "1" * 5_000,
    ],
)
def test_read_cursor_of_what_no_list_makes_is_refused(text: str) -> None:
    with pytest.raises(BadCursor):
        read_cursor(encoded(text))


NAMES = sorted(["b", "a", "ä ", "c", "soft\u00adhyphen", "b b"])


def test_items_after_each_of_them_are_the_later_ones() -> None:
    assert list(items_after(NAMES, lambda name: (name, 0), None)) == NAMES
    for place, name in enumerate(NAMES, 1):
        assert list(items_after(NAMES, lambda name: (name, 0), cursor_at((name, 0)))) == NAMES[place:]


def test_items_after_one_that_is_gone_go_on_where_it_stood() -> None:
    assert list(items_after(["a", "c"], lambda name: (name,), cursor_at(("b",)))) == ["c"]


def test_items_are_read_as_they_are_asked_for() -> None:
    unread = iter(NAMES)
    assert next(items_after(unread, lambda name: (name,), None)) == NAMES[0]
    assert list(unread) == NAMES[1:]


@pytest.mark.parametrize("mark", [("b",), (1, "b"), ("b", 0, 0), ("b", "0"), ("b", True)])
def test_items_after_a_mark_of_another_list_are_refused(mark: tuple[int | str, ...]) -> None:
    with pytest.raises(BadCursor):
        items_after(NAMES, lambda name: (name, 0), cursor_at(mark))


@pytest.mark.parametrize("cursor", ["0", "x", "{}", cursor_at(()), "W10", "WzEuNV0", "W251bGxd"])
@pytest.mark.parametrize("items", [[], NAMES], ids=["empty", "full"])
def test_items_after_what_no_list_makes_are_refused_also_of_an_empty_list(
    items: list[str], cursor: str
) -> None:
    with pytest.raises(BadCursor, match="leave it out to begin again"):
        items_after(items, lambda name: (name, 0), cursor)


def test_items_after_a_page_of_a_list_that_is_empty_by_now_are_none() -> None:
    assert list(items_after([], lambda name: (name, 0), cursor_at(("b", 0)))) == []


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 100])
def test_some_after_each_page_are_the_next_ones(limit: int) -> None:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page, cursor = some_after(NAMES, lambda name: (name,), cursor, limit)
        assert len(page) == min(limit, len(NAMES) - len(found))
        found += page
        if cursor is None:
            break
    assert found == NAMES


def test_some_after_without_a_limit_are_all_and_with_one_never_too_many() -> None:
    many = range(MAX_LIMIT + 9)
    assert some_after(many, lambda number: (number,), None, None) == (list(many), None)
    page, cursor = some_after(many, lambda number: (number,), None, 10**6)
    assert len(page) == MAX_LIMIT
    assert some_after(many, lambda number: (number,), cursor, None)[0] == list(many)[MAX_LIMIT:]


def test_cursor_of_a_class_with_the_longest_name_is_read() -> None:
    history = CallHistory(parts=("novel", "tainted"), novel=("p" * 160,), tainted=("p" * 160,))
    name = class_of("t" * MAX_CHARS, WEIGHTS, history)
    mark = ("t" * 128, name)
    assert len(name) > 600
    assert read_cursor(cursor_at(mark), (str, str)) == mark
