"""What is hidden, derived anew from Unicode's data over all code points."""

import sys
import unicodedata

import pytest

from schemas.display.characters import is_hidden
from schemas.display.escape import Badges, escaped

# DerivedCoreProperties.txt, Default_Ignorable_Code_Point.
IGNORABLE = """
    ad 34f 61c 115f-1160 17b4-17b5 180b-180f 200b-200f 202a-202e 2060-206f 3164 fe00-fe0f feff ffa0 fff0-fff8
    1bca0-1bca3 1d173-1d17a e0000-e0fff
"""
BLANK = (
    "FILLER",
    "INVISIBLE",
    "ZERO WIDTH",
    "VARIATION SELECTOR",
    "NULL NOTEHEAD",
    "PATTERN BLANK",
    "GRAPHEME",
)
PRINTED = {"Lu", "Ll", "Lt", "Nd", "Nl", "Mc", "Me", "Pd"}
NOTHING = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}


def ignorable() -> set[int]:
    found: set[int] = set()
    for word in IGNORABLE.split():
        first, _, last = word.partition("-")
        found.update(range(int(first, 16), int(last or first, 16) + 1))
    return found


def test_is_hidden_all_that_prints_as_nothing_of_all_code_points() -> None:
    default_ignorable = ignorable()
    shown = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if code != 0x20
        and not is_hidden(chr(code))
        and (
            unicodedata.category(chr(code)) in NOTHING
            or code in default_ignorable
            or any(word in unicodedata.name(chr(code), "") for word in BLANK)
        )
    ]
    assert shown == []


def test_is_hidden_no_letter_digit_or_mark_that_is_printed() -> None:
    hidden = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if is_hidden(chr(code))
        and unicodedata.category(chr(code)) in PRINTED
        # Characters of later Unicode than the table's are shown by their code points.
        and unicodedata.ucd_3_2_0.category(chr(code)) != "Cn"
    ]
    assert hidden == []


@pytest.mark.parametrize(
    "char", ["\U00016fe4", "\U0001d159", "\U00020000\U0003fffd"[1], "\u0378", "\U000f0000"]
)
def test_escaped_character_without_a_picture_is_shown_by_its_code_and_badged(char: str) -> None:
    badges = Badges()

    assert escaped(f"pay{char}ment", badges) == f"pay\\u{{{ord(char):x}}}ment"
    assert badges.sorted()


def test_escaped_as_version_1_showed_it_stays() -> None:
    assert escaped("a\U00016fe4b", Badges(1)) == "a\U00016fe4b"
