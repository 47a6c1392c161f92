import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.linear_patterns import PatternRefused, glob_matcher, linear_pattern

CLASS = "[" + "".join(f"{chr(0x4E00 + 3 * n)}-{chr(0x4E01 + 3 * n)}" for n in range(2000)) + "]"


@pytest.mark.parametrize(
    ("pattern", "fits", "misfits"),
    [
        (r"^\d{4}-\d\d$", ["2026-01"], ["2026-01\n", "٢٠٢٦-01", "x2026-01"]),
        ("a.c", ["xabcx"], ["ac"]),
        (r"^\u0041\u{42}$", ["AB"], ["u0041"]),
        (r"^\uD83D\uDE00$", ["\U0001f600"], ["\U0001f601"]),
        (r"^\cA\/\-$", ["\x01/-"], ["cA/-"]),
        (r"^(?<year>\d+)$", ["2026"], ["x"]),
        (r"^\p{Lu}+$", ["ÄB"], ["äB"]),
        (r"^\\u0041$", ["\\u0041"], ["A"]),
    ],
)
def test_linear_pattern_means_what_json_schema_says(
    pattern: str, fits: list[str], misfits: list[str]
) -> None:
    compiled = linear_pattern(pattern)

    assert all(compiled.search(text) for text in fits)
    assert not any(compiled.search(text) for text in misfits)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)b",
        "(?<!a)b",
        r"(a)\1",
        r"(?P<x>a)(?P=x)",
        "(?>a)",
        "a++",
        r"\Aa\Z",
        r"\Qa\E",
        r"\Ca",
        "[]a]",
        "[^]",
        "[[:alpha:]]",
        r"\uD83D",
        r"\uD83Dx",
        "(",
        "a{1001}",
        "x" * 20_000,
        r"\pL{1000}",
        "\ud800",
    ],
)
def test_linear_pattern_that_cannot_be_or_is_read_otherwise_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused):
        linear_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 100_000 + "b"),
        ("(a|a)*c", "a" * 100_000),
        (CLASS, "x" * 100_000),
        ("(" * 900 + ")" * 900, "x"),
    ],
)
def test_case_31_pattern_that_would_backtrack_takes_no_time(pattern: str, text: str) -> None:
    start = time.process_time()

    with suppress(PatternRefused):
        linear_pattern(pattern).search(text)

    assert time.process_time() - start < 1


@given(st.text(max_size=40))
def test_linear_pattern_of_any_text_is_a_pattern_or_refused(text: str) -> None:
    try:
        linear_pattern(text).search(text.encode("utf-8", "replace").decode())
    except PatternRefused:
        return


@pytest.mark.parametrize(
    ("pattern", "fits", "misfits"),
    [
        ("a*", ["a", "abc", "a\nb"], ["ba", "A"]),
        ("a?c", ["abc"], ["ac", "abbc"]),
        ("[a-c]x", ["bx"], ["dx", "-"]),
        ("[!a-c]x", ["dx"], ["bx"]),
        ("[abc", ["[abc"], ["a"]),
        ("[]]x", ["]x"], ["x"]),
        ("[^a]x", ["^x", "ax"], ["bx"]),
        ("a.b*", ["a.bc"], ["axbc"]),
        ("[a.]$*", ["a$1", ".$"], ["b$"]),
        ("ü?", ["üx"], ["u"]),
    ],
)
def test_glob_matcher_reads_as_fnmatch_does(pattern: str, fits: list[str], misfits: list[str]) -> None:
    test = glob_matcher(pattern)

    assert all(test(text) for text in fits)
    assert not any(test(text) for text in misfits)


def test_glob_matcher_class_that_is_none_is_refused() -> None:
    with pytest.raises(PatternRefused):
        glob_matcher("[z-a]*")
