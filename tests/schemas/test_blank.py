"""What is blank, derived anew from Unicode's data over all code points."""

import sys
import unicodedata

import pytest

from schemas.blank import is_blank
from schemas.command_rules import rules_of
from schemas.commands import RequestHumanInput
from schemas.display.characters import is_hidden
from schemas.limits import TEXT_MAX_CHARS

UNSEEN = {"Cc", "Cf", "Zs", "Zl", "Zp"}
# Format characters that are printed: Prepended_Concatenation_Mark of Unicode's PropList.txt.
PRINTED = {*map(chr, range(0x600, 0x606)), *"\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"}


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u00a0", "\u200b", "\u2060\ufeff", "\u2028", "\x00\x1b", "\u3164", "\U000e0041"]
)
def test_text_of_which_nothing_is_seen_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize(
    "text", ["a", "\u200ba\u200b", ".", "0", "\U0001f600", "\U0001fae8", "\u06dd", "\ue000", "е"]
)
def test_text_of_which_something_is_seen_is_not_blank(text: str) -> None:
    assert not is_blank(text)


def test_every_space_control_and_format_character_is_blank_and_no_character_that_is_printed() -> None:
    every = map(chr, range(sys.maxunicode + 1))
    wrong = [
        hex(ord(char))
        for char in every
        # Format characters of a later Unicode than the table's are seen until they are in it.
        if is_blank(char) != (unicodedata.category(char) in UNSEEN and char not in PRINTED)
        and not (is_blank(char) and is_hidden(char))
        and not (unicodedata.unidata_version != "14.0.0" and not is_blank(char))
    ]
    assert wrong == []


def test_longest_blank_question_is_found_blank_at_once() -> None:
    form = rules_of(RequestHumanInput)["question"].form
    assert form is not None
    assert not form.allows("\u200b" * TEXT_MAX_CHARS)
    assert form.allows("\u200b" * (TEXT_MAX_CHARS - 1) + "?")
