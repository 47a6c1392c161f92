"""One meaning, one text, one digest: strict JSON in, RFC 8785 out."""

from __future__ import annotations

import enum
import hashlib
import json
import math
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.canonical import (
    MAX_SAFE_INTEGER,
    MalformedJson,
    TooDeep,
    call_digest,
    canonical,
    check_value,
    parse_new,
    parse_strict,
    sha256_hex,
    tool_version_of,
)
from schemas.limits import JSON_MAX_DEPTH
from tests.schemas.strategies import DOUBLE, JSON_VALUES, TEXT

ODD_KEYS = {"€": 1, "\r": 2, "\ufb33": 3, "1": 4, "😀": 5, "\x80": 6, "ö": 7, "": 8}


@given(JSON_VALUES)
@example(ODD_KEYS)
@example([333333333.33333329, 1e30, 4.50, 2e-3, 1e-27, -0.0, 5e-324, 1.7976931348623157e308, 1e-7, 1e21])
@example('€$\x0f\nA\'B"\\\\"/')
def test_canonical_of_any_value_is_the_librarys(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value).decode()


@given(DOUBLE)
def test_canonical_of_any_double_is_the_librarys_or_refused(number: float) -> None:
    if MAX_SAFE_INTEGER < abs(number) < 1e21:
        with pytest.raises(MalformedJson, match="send it as a string"):
            canonical(number)
    else:
        assert canonical(number) == rfc8785.dumps(number).decode()


@given(JSON_VALUES)
def test_parse_of_canonical_gives_the_value_back(value: Any) -> None:
    again = parse_strict(canonical(value))
    assert again == value
    assert canonical(again) == canonical(value)


@given(JSON_VALUES, st.booleans())
def test_parse_of_any_spelling_has_one_canonical_form(value: Any, escaped: bool) -> None:
    spelled = json.dumps(value, indent=1, ensure_ascii=escaped)
    assert canonical(parse_strict(spelled)) == canonical(value)
    assert parse_strict(spelled.encode()) == value


def test_canonical_orders_keys_by_utf16_code_units() -> None:
    # RFC 8785, section 3.2.3: by code point the emoji would come last.
    expected = ["", "\r", "1", "\x80", "ö", "€", "😀", "\ufb33"]
    assert list(json.loads(canonical(ODD_KEYS))) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a":1,"a":2}', "same key twice"),
        ('{"a":{"b":1,"b":1}}', "same key twice"),
        (r'{"a":1,"\u0061":2}', "same key twice"),
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("1e400", "out of range"),
        ("-1e999", "out of range"),
        ("9007199254740992", "send it as a string"),
        ("-9007199254740992", "send it as a string"),
        ("9007199254740993.0", "send it as a string"),
        ("1e20", "send it as a string"),
        ("9" * 5000, "send it as a string"),
        (r'"\ud800"', "lone surrogate"),
        (r'{"\udc00":1}', "lone surrogate"),
        (r'["\udc00\ud800"]', "lone surrogate"),
        ('"\ud800"', "lone surrogate"),
        ("[" * 65 + "]" * 65, "nested deeper than 64"),
        ('{"a":' * 65 + "1" + "}" * 65, "nested deeper than 64"),
        ("[" * 100_000, "nested deeper than 64"),
        ("[" * 100_000 + "]" * 100_000, "nested deeper than 64"),
        ('{"a":' * 100_000, "nested deeper than 64"),
        ("", "not valid JSON"),
        ("{} {}", "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ("[1,]", "not valid JSON"),
        ("01", "not valid JSON"),
        ("+1", "not valid JSON"),
        ("٣", "not valid JSON"),
        ('"a\nb"', "not valid JSON"),
        ("\ufeff1", "not valid JSON"),
        ("\u00a01", "not valid JSON"),
        (b"\xef\xbb\xbf1", "not valid JSON"),
        (b'"\xff"', "not valid JSON"),
        (b'"\xed\xa0\x80"', "not valid JSON"),
        ('"a"'.encode("utf-16"), "not valid JSON"),
        ('"a"'.encode("utf-16-le"), "not valid JSON"),
        ('"a"'.encode("utf-32"), "not valid JSON"),
    ],
)
def test_parse_of_what_has_no_single_meaning_is_refused(text: str | bytes, told: str) -> None:
    with pytest.raises(MalformedJson, match=told):
        parse_strict(text)


@pytest.mark.parametrize(
    ("text", "value", "canonical_text"),
    [
        ("-0", 0, "0"),
        ("-0.0", 0.0, "0"),
        ("1.0", 1, "1"),
        ("1e2", 100, "100"),
        ("9007199254740991", MAX_SAFE_INTEGER, "9007199254740991"),
        ("-9007199254740991", -MAX_SAFE_INTEGER, "-9007199254740991"),
        ("6.022e23", 6.022e23, "6.022e+23"),
        ("1e21", 1e21, "1e+21"),
        ("1e-400", 0, "0"),
        ("[" * 64 + "]" * 64, None, "[" * 64 + "]" * 64),
        (r'"\ud83d\ude00"', "😀", '"😀"'),
        (r'"\u0000"', "\x00", r'"\u0000"'),
        (r'"\u2028"', "\u2028", '"\u2028"'),
        (" \t\r\n{} ", {}, "{}"),
    ],
)
def test_parse_of_the_edges_is_taken(text: str, value: Any, canonical_text: str) -> None:
    parsed = parse_strict(text)
    assert value is None or parsed == value
    assert canonical(parsed) == canonical_text


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_parse_of_anything_is_a_value_or_malformed(text: str | bytes) -> None:
    try:
        value = parse_strict(text)
    except MalformedJson:
        return
    assert parse_strict(canonical(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        [math.inf],
        2**53,
        {"a": -(2**60)},
        {1: 2},
        {None: 1, "a": 2},
        {"\ud800": 1},
        {"é\ud800": 1},
        "\udfff",
        b"bytes",
        {"a"},
        object(),
        json.loads("[" * 70 + "]" * 70),
        json.loads('{"a":' * 70 + "1" + "}" * 70),
    ],
)
def test_canonical_of_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(MalformedJson):
        canonical(value)
    with pytest.raises(MalformedJson):
        check_value(value)


def test_canonical_of_subclasses_writes_their_value() -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    class Count(enum.IntEnum):
        ONE = 1

    assert canonical((Colour.RED, Count.ONE, True, None)) == '["red",1,true,null]'


@given(TEXT, TEXT, TEXT, TEXT, st.dictionaries(TEXT, JSON_VALUES, max_size=4))
def test_call_digest_is_that_of_the_whole_object(
    tenant: str, agent: str, tool: str, version: str, arguments: dict[str, Any]
) -> None:
    whole: dict[str, Any] = {
        "tenant": tenant,
        "agent": agent,
        "tool": tool,
        "tool_version": version,
        "arguments": arguments,
    }
    expected = hashlib.sha256(rfc8785.dumps(whole)).hexdigest()
    assert call_digest(tenant, agent, tool, version, canonical(arguments)) == expected


def test_call_digest_of_an_unknown_tool_has_an_empty_version() -> None:
    text = '{"agent":"bot","arguments":{},"tenant":"acme","tool":"rm","tool_version":""}'
    assert call_digest("acme", "bot", "rm", "", "{}") == hashlib.sha256(text.encode()).hexdigest()


def test_call_digest_of_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(MalformedJson):
        call_digest("acme", "\ud800", "rm", "", "{}")


def test_tool_version_is_the_hash_of_the_canonical_definition() -> None:
    definition: dict[str, Any] = {
        "name": "rm",
        "inputSchema": {"type": "object"},
        "annotations": {"destructiveHint": True},
    }
    assert tool_version_of(definition) == hashlib.sha256(rfc8785.dumps(definition)).hexdigest()
    assert tool_version_of(dict(reversed(definition.items()))) == tool_version_of(definition)


def test_sha256_of_text_is_that_of_its_utf8() -> None:
    assert sha256_hex("é") == sha256_hex("é".encode()) == hashlib.sha256(b"\xc3\xa9").hexdigest()


@pytest.mark.parametrize(
    "text",
    ["1e20", "1e21", "-1E+21", "6.022e23", "1e300", "9007199254740992", f"1{'0' * 25}.0", "[1e22]"],
)
def test_integer_beyond_the_exact_ones_is_refused_alike_however_it_is_written(text: str) -> None:
    with pytest.raises(MalformedJson, match="send it as a string"):
        parse_new(text)


@pytest.mark.parametrize("text", ["9007199254740991.0", "0.1", "1e15", "-9.5e-300", '"1e21"'])
def test_number_that_is_exact_or_no_integer_is_taken_as_new(text: str) -> None:
    assert parse_new(text) == parse_strict(text)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("innermost", ["1", "[]", "{}"])
def test_parse_takes_64_levels_and_no_more_whatever_stands_beside(
    opening: str, closing: str, innermost: str
) -> None:
    levels = JSON_MAX_DEPTH - (innermost != "1")
    assert parse_strict(opening * levels + innermost + closing * levels) is not None
    with pytest.raises(TooDeep):
        parse_strict(opening * (levels + 1) + innermost + closing * (levels + 1))


@pytest.mark.parametrize("escape", [r"\ud800", r"\uD800", r"\udfff"])
@pytest.mark.parametrize("text", ['["x","{}"]', '{{"a":[{{"{}":1}}]}}', '"{}"'])
def test_parse_of_an_escaped_lone_surrogate_anywhere_is_refused(text: str, escape: str) -> None:
    with pytest.raises(MalformedJson):
        parse_strict(text.format(escape))


def test_parse_takes_what_only_looks_like_a_surrogate() -> None:
    assert parse_strict(r'["\ud83d\ude00", "\\ud800", "\u0041"]') == ["😀", "\\ud800", "A"]
