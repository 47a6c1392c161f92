"""Marks that paint over other characters, derived anew from Unicode's data over all code points."""

import sys
import unicodedata

import pytest

from placet.cli import safe
from schemas.display.characters import is_hidden
from schemas.display.escape import Badges, escaped, escaped_lines, revealed
from schemas.display.marks import STACK_MAX, uncovered
from schemas.display.whole import look_at

ACUTE = "\u0301"
STROKE = "\\u{338}"


def test_every_mark_that_strikes_through_or_encloses_is_found() -> None:
    expected = {
        char
        for char in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(char) == "Me" or unicodedata.combining(char) == 1
    }
    assert {char for char in map(chr, range(sys.maxunicode + 1)) if uncovered(f"a{char}")} == expected


def test_every_mark_at_the_beginning_is_found_and_no_other_character() -> None:
    expected = {
        char for char in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(char) in ("Mn", "Me")
    }
    assert {char for char in map(chr, range(sys.maxunicode + 1)) if uncovered(char)} == expected


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("1\u03380", f"1{STROKE}0"),
        ("5\u20dd", "5\\u{20dd}"),
        (f"{ACUTE}a", "\\u{301}a"),
        (f"{ACUTE}{ACUTE}a", "\\u{301}\\u{301}a"),
        ("a" + ACUTE * 6, f"a{ACUTE * STACK_MAX}" + "\\u{301}" * 2),
    ],
)
def test_mark_that_paints_over_others_is_shown_by_its_code_and_badged(raw: str, seen: str) -> None:
    badges = Badges()
    assert escaped(raw, badges) == seen
    assert badges.sorted() == ("covering",)
    assert revealed(raw) == seen
    assert look_at((), [raw], 4).must_read
    assert safe.escaped(raw) == seen


@pytest.mark.parametrize(
    "word",
    [
        "cafe\u0301",
        "Vie\u0323\u0302t",
        "\u05d1\u05bc\u05b0\u0596\u05e8\u05b5\u05d0\u05e9\u05c1\u05b4\u0596\u05d9\u05ea",  # pointed and cantillated
        "\u0939\u093f\u0928\u094d\u0926\u0940",  # Hindi
        "\u0e17\u0e35\u0e48\u0e19\u0e35\u0e48",  # Thai
        "☀\ufe0f",
    ],
)
def test_word_with_its_own_marks_is_shown_as_it_is(word: str) -> None:
    badges = Badges()
    assert escaped(word, badges) == word
    assert "covering" not in badges.sorted()


def test_every_line_of_a_text_begins_anew() -> None:
    assert escaped_lines(f"a\n{ACUTE}b", Badges()) == ["a", "\\u{301}b"]


def test_versions_before_the_fourth_show_marks_as_they_came_and_need_no_reading() -> None:
    raw = "1\u03380"
    assert escaped(raw, Badges(3)) == raw
    assert not look_at((), [raw], 3).must_read


def test_no_mark_is_hidden_that_a_word_needs() -> None:
    assert not any(map(is_hidden, "\u0301\u0323\u05bc\u0e35"))
