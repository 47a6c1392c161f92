"""Prose is shown as it is written: what reads Markdown or HTML joins no name in it that is not looked at."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from services.domain.policy.identifying import identifying_of
from services.domain.prose import prose_of
from services.domain.words import plain

COMMONMARK = MarkdownIt("commonmark").enable(["strikethrough", "table"])
# Names, and what may join or hide them.
PARTS = """
    evil bank.com ann . com @ 3192 6819 9211 4455 * ** _ __ ` `` [ ] ( ) ](#) < > <b> </b> <!-- --> \\ ! ~~ - / #
    | : https:// [a] <https://bank.com| <@U012AB3CD> <!here> ``` *innen /-innen () (0) [1] ,- $ C# .NET ...
    ' " & &amp; &#46; { } = , ; x \u2019 \u201c \u3002 \u300c \u4f60 \u2060 \u202e
"""
TEXTS = st.lists(st.sampled_from([*PARTS.split(), " ", "\n", "  \n"]), min_size=2, max_size=10).map("".join)
BLOCKS = {"p", "li", "td", "th", "h1", "h2", "h3", "pre", "blockquote", "tr", "hr", "br"}


class _Visible(HTMLParser):
    """The text that a browser shows, with spaces between blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.shown: list[str] = []

    def handle_data(self, data: str) -> None:
        self.shown.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.shown += [" "] if tag in BLOCKS else []

    def handle_endtag(self, tag: str) -> None:
        self.shown += [" "] if tag in BLOCKS else []


def visible(page: str) -> str:
    parser = _Visible()
    parser.feed(page)
    parser.close()
    return " ".join("".join(parser.shown).split())


def values(text: str) -> set[str]:
    return {value.text for value in identifying_of({"body": text}).values if not value.is_weak}


def names(text: str) -> set[str]:
    """The values without those that lead nowhere: `//`, and `3192::`."""
    return {value for value in values(text) if not value.endswith((":", "/"))}


@settings(max_examples=500)
@given(TEXTS)
@pytest.mark.parametrize("render", [COMMONMARK.render, str])
def test_prose_has_every_value_that_it_has_where_it_is_shown(render: Callable[[str], str], text: str) -> None:
    text = f"a {text}"
    found, shown = values(text), visible(render(text))

    assert prose_of(text, plain(text)) or text in found
    # A value as a whole, and so new, unless people approved that very text.
    assert text in found or not prose_of(shown, plain(shown)) or names(shown) <= found


def test_texts_of_the_test_are_prose_often_enough() -> None:
    found = [one for one in ("bank.com ", "ann @ x", "[a](#)") if prose_of(one, plain(one))]

    assert found == ["bank.com "]
