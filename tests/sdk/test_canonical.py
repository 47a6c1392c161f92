import hashlib
import json
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placet.canonical import MalformedJson, call_digest, canonical, check_json, parse_strict
from schemas import canonical as server

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(
    allow_nan=False, allow_infinity=False, width=32
).filter(lambda number: abs(number) < 2**53)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


class Colour(StrEnum):
    RED = "red"


def test_call_digest_is_the_sha256_of_the_documented_bytes() -> None:
    spelled = (
        b'{"agent":"billing-bot","arguments":{"amount":98.7,"recipient":"GB29"},"tenant":"acme",'
        b'"tool":"send_money","tool_version":"v1"}'
    )
    digest = call_digest("acme", "billing-bot", "send_money", "v1", {"recipient": "GB29", "amount": 98.70})
    assert digest == hashlib.sha256(spelled).hexdigest()
    assert digest == "cef06bd08b524679f91740e97015469db0040a55b2a51f24e8eeb7ea2ebc1688"


def test_call_digest_sorts_keys_by_utf16_and_keeps_text_as_it_is() -> None:
    arguments = {"\U0001f600": 1, "\ufb33": 2, "ö": 3, "a": "\u202e\u0007"}
    digest = call_digest("t", "a", "x", "", arguments)
    assert digest == "b3e4f771907ea23f6fc1a90694d8042592a14bb1b4605a65d00da6e48fbaf1f9"


@given(JSON, TEXT, TEXT)
def test_call_digest_for_any_arguments_is_the_servers(value: Any, agent: str, tool: str) -> None:
    arguments = {"value": value}
    theirs = server.call_digest("acme", agent, tool, "v", server.canonical(arguments))
    assert call_digest("acme", agent, tool, "v", arguments) == theirs


@given(JSON)
def test_canonical_read_back_has_the_same_canonical_form(value: Any) -> None:
    assert canonical(parse_strict(canonical(value))) == canonical(value)


@pytest.mark.parametrize("number", [1, 1.0])
def test_canonical_of_equal_numbers_is_one_form(number: float) -> None:
    assert canonical({"n": number}) == b'{"n":1}'


@pytest.mark.parametrize(
    "value", [{1, 2}, b"bytes", Colour.RED, 1j, {1: "key"}, [object()], {"deep": [{"x": {1}}]}]
)
def test_check_json_of_what_is_no_json_value_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError):
        check_json(value, "it")


def test_check_json_names_the_place() -> None:
    with pytest.raises(TypeError, match=r"order\.lines\[1\]\.at is a .*set"):
        check_json({"lines": [{"at": 1}, {"at": {1}}]}, "order")


@pytest.mark.parametrize("number", [2**53, -(2**53), 1e16, 123456789012345678])
def test_check_json_of_an_unsafe_number_says_send_a_string(number: float) -> None:
    with pytest.raises(ValueError, match="send a string"):
        check_json(number, "amount")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_check_json_of_a_number_that_is_none_refuses(number: float) -> None:
    with pytest.raises(ValueError, match="not a JSON number"):
        check_json(number, "amount")


def test_check_json_of_a_lone_surrogate_refuses() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        check_json({"name": "\ud800"}, "person")


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":2}', "NaN", "[1e400]", '"\\ud800"', "12345678901234567890", "{", "[" * 70 + "]" * 70],
)
def test_parse_strict_of_json_with_several_meanings_refuses(text: str) -> None:
    with pytest.raises(MalformedJson):
        parse_strict(text)


def test_parse_strict_of_plain_json_reads_it() -> None:
    value = {"a": [1, 2.5, None, True, "ö"]}
    assert parse_strict(json.dumps(value)) == value
