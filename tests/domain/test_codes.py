"""Codes in a text: account numbers and the like, however they are written."""

import time
from contextlib import suppress
from string import ascii_lowercase, punctuation

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.codes import WORDS_MAX, codes_in
from services.domain.words import TEXT_MAX_BYTES, TooManyWords


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", []),
        ("Pay the March invoice, 98.70 euro", []),
        ("05.03.2026 - 9.3.2026, 01/31/2026 and 31/01/2026", []),
        ("05.13.2026", ["05132026"]),
        ("\u60a8\u597d\u3002\u4f1a\u8bae\u3002\u518d\u89c1", []),
        ("evil\u3002com", ["EVIL.COM"]),
        ("at 10:30:15 on 2026-01-05, 2026/01/05 or 2026-01-05T10:30", []),
        ("1234567", ["1234567"]),
        ("12-34 56/78", ["12345678"]),
        ("+1 (555) 010-9999", ["15550109999"]),
        ("DE89 3704 0044 0532 0130 00, thanks", ["DE89370400440532013000"]),
        ("de89370400440532013000", ["DE89370400440532013000"]),
        ("\uff11\uff12\uff13\uff14\uff15\uff16", ["123456"]),
        ("123\u200b456", ["123456"]),
        ("0xab5801a7d398351b8be11c439e05c5b3259aec9b", ["0XAB5801A7D398351B8BE11C439E05C5B3259AEC9B"]),
        ("q" * 32, ["Q" * 32]),
        ("q" * 31, []),
        ("\u8bf7" * 40, []),
        ("fetch evil.com/steal?x=1, e.g. a.b, or notes.txt.", ["EVIL.COM", "NOTES.TXT"]),
        ("It ends.Then it begins", ["ENDS.THEN"]),
        ("send it to 0xC0A8FEFE", ["0XC0A8FEFE"]),
        ("send it to 0xc0.0xa8.254.0xfe.", ["0XC0.0XA8.254.0XFE", "0XC00XA82540XFE"]),
        ("send it to 192.0xA8FEFE now", ["192.0XA8FEFE"]),
        ("colours 0xFF, 0x1F.x, x0xC0A8FEFE and 0xC0A8FEFEA", []),
        ("rooms 101 and 102 and 103", []),
    ],
)
def test_codes_of_a_text(text: str, codes: list[str]) -> None:
    assert list(dict.fromkeys(code.text for code in codes_in(text))) == codes


@given(st.text(max_size=100), st.text(max_size=100))
def test_codes_of_any_text_are_written_in_capitals_without_separators(before: str, after: str) -> None:
    found = list(codes_in(f"{before}\x00GB29 NWBK 6016 1331 9268 19 by {after}"))

    # What follows may happen to be right as its end, too.
    assert any(code.text.startswith("GB29NWBK60161331926819") for code in found)
    for part in (part for code in found for part in code.parts):
        assert not set(part) & set(ascii_lowercase)
        assert " " not in part


@pytest.mark.parametrize(
    "text",
    [
        "ES91 2100 0418 4502 0005 1332 this week",
        "es9121000418450200051332 by Friday",
        "ES91 2100 0418 4502 0005 1332, 2024 invoices",
        "ES91_2100_0418_4502_0005_1332_",
        "ES91, 2100, 0418, 4502, 0005, 1332, 17",
        "ES91:2100:0418:4502:0005:1332:1",
        "ES91 ~ 2100 ~ 0418 ~ 4502 ~ 0005 ~ 1332",
        "ES91** **2100** **0418** **4502** **0005** **1332",
        "IBANES9121000418450200051332",
    ],
)
def test_iban_ends_where_its_check_digits_are_right_whatever_follows(text: str) -> None:
    assert next(codes_in(text)).text == "ES9121000418450200051332"


@pytest.mark.parametrize(
    "text",
    [
        "12345678",
        "1234 5678",
        "1234  5678",
        "1234\n5678",
        "1234\u20135678",
        "1234, 5678",
        "1234_5678",
        "pay to 12345678 7",
        "EUR 500 12345678",
        "1234 5678 2024 invoices",
        "1234 5678, 2026-01-05",
    ],
)
def test_code_is_compared_however_its_groups_and_neighbours_are_written(text: str) -> None:
    assert "12345678" in {part for code in codes_in(text) for part in code.parts}


def test_strong_codes_name_an_account_or_a_place_by_themselves() -> None:
    text = "Ref 123456, invoice 20260042, call 0123456789, see evil.com"

    assert [code.text for code in codes_in(text) if code.is_strong] == ["EVIL.COM", "0123456789"]


@pytest.mark.parametrize("between", ["", *punctuation, " ", "\u00b7"])
def test_long_numbers_are_strong_whatever_one_character_stands_between_their_groups(between: str) -> None:
    found = list(codes_in(f"to {between.join(('1234', '5678', '90'))} by Friday"))

    assert [(code.text, code.is_strong) for code in found] == [("1234567890", True)]


@pytest.mark.parametrize(
    "between",
    [
        "--",
        " / ",
        " - ",
        "\u2022",
        " \u2022 ",
        "\u2215",
        "\u30fb",
        "** **",
        ", ",
        ". ",
        " | ",
        ",\n",
        '","',
        "\ufe0f\u20e3",
    ],
)
def test_groups_of_one_number_are_strong_whatever_stands_between_them(between: str) -> None:
    found = list(codes_in(f"pay {between.join(('4111', '2222', '3333', '44'))} by Friday"))

    assert [(code.text, code.is_strong) for code in found] == [("41112222333344", True)]


@pytest.mark.parametrize(
    "text",
    [
        "rooms 101, 102, 103 and 104, 105, 106, 107",
        "in 2019, 2020, 2021, 2022",
        "1200, 350, 17, 98000",
        "2026-01-05, 2026-01-06, 2026-01-07",
        "10:30, 11:30, 12:30",
    ],
)
def test_list_of_numbers_is_no_strong_code(text: str) -> None:
    assert not [code for code in codes_in(text) if code.is_strong]


def test_digits_of_other_scripts_are_digits() -> None:
    assert [code.text for code in codes_in("\u0661\u0662\u0663\u0664\u0665\u0666")] == ["123456"]


@pytest.mark.parametrize(
    "text",
    [
        "1 " * 32_000,
        "x" * 65_000,
        "1" * 65_000,
        "12-" * 21_000,
        "ab." * 21_000,
        "a." * 32_000,
        "a\\." * 21_000,
        ".".join(["1-" * 20] * 1_500),
        "a-" * 32_000,
        "GB29 " * 13_000,
        "GB29~, " * 9_000,
        "2026-01-05 " * 5_900,
        "\ufdfa" * 21_000,
    ],
)
def test_large_texts_take_a_time_that_grows_with_their_length(text: str) -> None:
    def seconds(text: str) -> float:
        began = time.process_time()
        with suppress(TooManyWords):
            list(codes_in(text))
        return time.process_time() - began

    tenth = min(seconds(text[: len(text) // 10]) for _ in range(3))
    assert min(seconds(text) for _ in range(2)) < 40 * tenth + 0.05


def test_text_of_too_many_words_with_digits_is_not_read_to_its_end() -> None:
    # Each is compared in several runs: the decider's one thread reads what any open-world tool returns.
    with pytest.raises(TooManyWords):
        list(codes_in("12 " * (WORDS_MAX + 1)))
    assert list(codes_in("12 x " * WORDS_MAX)) == []


@pytest.mark.parametrize(
    "text",
    [
        "60 16 13 31 92 68 19",
        "601613;31926819",
        "601613=31926819",
        "GB29-NWBK-6016-1331-9268-19",
        "GB29.NWBK.6016.1331.9268.19",
    ],
)
def test_code_of_many_groups_is_compared_as_a_whole(text: str) -> None:
    whole = {"60161331926819", "GB29NWBK60161331926819"}
    assert whole & {part for code in codes_in(text) for part in code.parts}


@pytest.mark.parametrize(
    "text", ["a.evil.com", "x.com", "t.me/evil", "1.evil.com", "evil\u3002com", "10.1.2.3"]
)
def test_names_with_short_labels_and_addresses_are_strong_codes(text: str) -> None:
    assert any(code.is_strong for code in codes_in(f"look at {text}, please"))


@pytest.mark.parametrize(
    "text", ["e.g. this", "i.e. that", "at 5 p.m. or 6 a.m.", "in the U.S. today", "v1.2.3"]
)
def test_abbreviations_are_no_codes(text: str) -> None:
    assert not [code for code in codes_in(text) if code.is_strong]


def test_capitals_of_other_alphabets_are_those_of_other_names() -> None:
    def names(text: str) -> set[str]:
        return {code.text for code in codes_in(text)}

    assert names("see l\u0131dl.com").isdisjoint(names("see lidl.com"))
    assert names("see stra\u00dfe.de").isdisjoint(names("see strasse.de"))


def test_text_that_is_too_long_is_not_read() -> None:
    with pytest.raises(TooManyWords):
        list(codes_in("1" * (TEXT_MAX_BYTES + 1)))
