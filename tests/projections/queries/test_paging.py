"""What a list's cursor may say: only what a list can have made."""

from __future__ import annotations

import base64

import pytest

from projections.queries.paging import BadCursor, cursor_at, items_after, page_of, read_cursor


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
