"""What a text says where it is shown as HTML, or decoded."""

from __future__ import annotations

import time

import pytest

from services.domain.markup import readings


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("evil&#46;com", "evil.com"),
        ("evil&period;com", "evil.com"),
        ("evil<b></b>.com", "evil.com"),
        ("evil<!-- no -->.com", "evil.com"),
        ("evil%2Ecom or", "evil.com or"),
        ("ann(at)example[.]com", "ann@example.com"),
        ("ann [at] example (dot) com", "ann@example.com"),
        ("4111<td>1111</td>", "4111 1111 "),
        ('<a href="https:\n//evil.c\nom">', '<a href="https://evil.com">'),
        ('<a href="ht&#x74;ps&colon;//evil.com">', '<a href="https://evil.com">'),
    ],
)
def test_text_is_read_as_it_is_and_as_it_is_shown(text: str, reading: str) -> None:
    found = readings(text)

    assert found[0] == text
    assert reading in found
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    "text", ["", "Dear Ann, 5 < 6 and 7 > 3", "https://example.com/a%20b", "50 % of 20", "a & b"]
)
def test_text_without_anything_that_stands_for_something_else_is_read_once(text: str) -> None:
    assert readings(text) == (text,)


def test_tag_does_not_go_on_in_another_text() -> None:
    assert readings("a <b\x00evil.com> c")[-1] == "a <b\x00evil.com> c"


@pytest.mark.parametrize(
    "text", ["<", "<a", "<a>", "<!--", "&", "&a", "&#46;", "%41", "% 41 ", "(at)", "[ ", "x%"]
)
def test_large_texts_are_read_in_a_time_that_grows_with_their_length(text: str) -> None:
    def seconds(length: int) -> float:
        began = time.thread_time()
        readings(text * (length // len(text)))
        return time.thread_time() - began

    tenth = min(seconds(6_500) for _ in range(3))
    assert min(seconds(65_000) for _ in range(3)) < 30 * tenth + 0.01
