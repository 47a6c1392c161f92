from __future__ import annotations

import pytest

from gateway.problems import Problem, shortened
from gateway.strictjson import BODY_MAX_BYTES, canonical_text, parse, parse_object
from schemas.limits import ARGUMENTS_MAX_BYTES


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":2}',
        b'{"a":{"b":1,"b":1}}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":1e400}',
        b'{"a":9007199254740993}',
        b'{"a":"\\ud800"}',
        b'{"\\ud800":1}',
        b'{"a":"\xff"}',
        b"",
        b"{",
        b'{"a":1}x',
    ],
    ids=lambda raw: raw[:24].decode(errors="replace"),
)
def test_parse_json_with_more_than_one_meaning_is_malformed(raw: bytes) -> None:
    with pytest.raises(Problem) as caught:
        parse(raw)
    assert caught.value.status == 400


@pytest.mark.parametrize("number", ["1e20", "1e21", "-1E+21", "9007199254740992", "1e300"])
def test_parse_integer_beyond_the_exact_ones_is_refused_alike_at_every_door(number: str) -> None:
    for read in (parse, parse_object):
        with pytest.raises(Problem, match="send it as a string") as caught:
            read(f'{{"arguments":{{"amount":{number}}}}}'.encode())
        assert caught.value.status == 400


@pytest.mark.parametrize(
    "raw",
    [
        b'"' + b"x" * BODY_MAX_BYTES + b'"',
        b"[" * 65 + b"]" * 65,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        b'{"a":' * 100_000,
    ],
    ids=["over 1 MiB", "65 arrays", "100,000 arrays", "65 objects", "100,000 objects, open"],
)
def test_parse_of_what_is_too_long_or_too_deep_is_too_large(raw: bytes) -> None:
    with pytest.raises(Problem) as caught:
        parse(raw)
    assert caught.value.status == 413


def test_parse_at_the_deepest_level_is_read() -> None:
    assert parse(b"[" * 64 + b"]" * 64) is not None


@pytest.mark.parametrize("raw", [b"[]", b"1", b'"a"', b"null"])
def test_parse_object_of_something_else_is_malformed(raw: bytes) -> None:
    with pytest.raises(Problem) as caught:
        parse_object(raw)
    assert caught.value.status == 400


def test_parse_object_of_nothing_is_empty() -> None:
    assert parse_object(b"") == {}


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_canonical_text_is_bounded_in_bytes(letter: str) -> None:
    size = len(letter.encode())
    fits = (ARGUMENTS_MAX_BYTES - 2) // size
    canonical_text(letter * fits, "arguments")
    with pytest.raises(Problem) as caught:
        canonical_text(letter * (fits + 1), "arguments")
    assert caught.value.status == 413


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("", 3, ""),
        ("abc", 3, "abc"),
        ("abcd", 3, "…"),
        ("abcdef", 5, "ab…"),
        ("ééé", 6, "ééé"),
        ("éééé", 6, "é…"),
        ("🙂🙂", 8, "🙂🙂"),
        ("🙂🙂🙂", 8, "🙂…"),
    ],
)
def test_text_is_shortened_at_a_character_and_only_if_it_is_too_long(
    text: str, most: int, expected: str
) -> None:
    assert shortened(text, most) == expected
    assert len(expected.encode()) <= most
