"""What it costs to read the result of an open-world tool: others decide what is in it, and all tenants wait."""

import json
import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.codes import codes_in, parts_in
from services.domain.untrusted import NO_WORDS
from services.domain.words import TooManyWords, plain

# As it is read label by label, in a time that grows with the square of their number.
DOTTED = re.compile(r"(?<![\w-])[\w-]+(?:\\?\.[\w-]+)*\\?\.(?:XN--[\w-]+|[^\W\d_]{2,}\d?)(?![^\W_])")
MARKS = st.text(
    st.sampled_from("\u0301\u0323\u0315\u031b\u0344\u0f73\u05b0\u3099\uff9e\u2022a\u00e9"), max_size=200
)


@pytest.mark.parametrize(
    "text",
    [
        "1." * 32_000,
        "1.1-" * 16_000,
        "ab." * 21_000,
        "a" + "\u0301\u0323" * 16_000,
        "\uff9e\u0301" * 13_000,
        "12, " * 4_000 + "x " * 20_000,
        "GB29 NWBK 6016 1331 9268 18 " * 2_300,
        "a::b " * 13_000,
        "1, " * 4_000,
        "\\n" * 16_000,
        "\\" * 64_000,
        "\\\\u0065<b>" * 6_400,
        "\\ufdfa\\\\" * 7_000,
        "\\u{" + "0" * 64_000,
        "\\ud83d" * 10_000,
    ],
)
def test_large_results_take_a_time_that_grows_with_their_length(text: str) -> None:
    def seconds(text: str) -> float:
        began = time.process_time()
        NO_WORDS.with_output("c", text)
        return time.process_time() - began

    tenth = min(seconds(text[: len(text) // 10]) for _ in range(3))
    assert min(seconds(text) for _ in range(2)) < 40 * tenth + 0.05


def test_numbers_of_a_result_are_read_only_as_long_as_it_is_not_too_long() -> None:
    numbers = json.dumps([1] * 60_000)

    assert NO_WORDS.with_output("c", numbers).is_full
    assert not NO_WORDS.with_output("c", json.dumps([1] * 4_000)).is_full


@given(MARKS)
def test_plain_form_is_unicodes_however_many_marks_are_in_a_row(text: str) -> None:
    assert plain(text) == unicodedata.normalize("NFKC", text)


def test_plain_form_is_unicodes_for_every_character_that_is_or_begins_with_a_mark() -> None:
    def begins_with_mark(character: str) -> bool:
        return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0

    marks = [
        one for one in map(chr, range(0x110000)) if not 0xD800 <= ord(one) < 0xE000 and begins_with_mark(one)
    ]
    assert len(marks) > 800
    for one in marks:
        text = f"a{one * 40}" + "\u0323\u0301" * 20
        if plain(one):
            assert plain(text) == unicodedata.normalize("NFKC", text), hex(ord(one))


@given(st.text(st.sampled_from("aB1.-_\\ \u00e9,"), max_size=40))
def test_dotted_names_are_found_as_if_each_was_looked_for_by_itself(text: str) -> None:
    written = text.replace("a", "A").replace("x", "X")
    expected = [found.replace("\\", "") for found in DOTTED.findall(written)]

    assert [code.text for code in codes_in(text) if "." in code.text] == expected


@given(
    st.lists(
        st.sampled_from(
            (
                "12",
                "123456",
                "a1",
                "2026-01-05",
                "10:30",
                "evil.com",
                "GB29 NWBK 6016 1331 9268 19",
                "x" * 32,
                "and",
            )
        ),
        max_size=30,
    ),
    st.sampled_from((" ", ", ", "-", "\n", " x ")),
    st.integers(0, 400),
)
def test_parts_are_all_of_those_of_the_codes_or_there_are_too_many(
    words: list[str], between: str, most: int
) -> None:
    text = between.join([*words, "."])
    codes = list(codes_in(text))
    parts = {part for code in codes for part in (code.text, *code.parts)}

    try:
        found = {part for some in parts_in(plain(text), most) for part in some}
    except TooManyWords:
        assert sum(1 + len(code.parts) for code in codes) > most
    else:
        assert found == parts
