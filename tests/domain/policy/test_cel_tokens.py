"""Strings of conditions: their value is that of the evaluator, whatever their escapes."""

from __future__ import annotations

import pytest

from services.domain.policy.cel_tokens import string_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"plain"', "plain"),
        (r"'it\'s'", "it's"),
        (r'"\101\060"', "A0"),
        (r'"\x41\x7a"', "Az"),
        (r'"\u00e9\U0001F600"', "é😀"),
        (r'"\n\t\\"', "\n\t\\"),
        (r'r"\101\n"', r"\101\n"),
        (r'"\U00110000"', "\ufffd"),
    ],
)
def test_value_of_a_string(text: str, value: str) -> None:
    assert string_value(text) == value
