"""The identifying values of a call: whom and what it is about, and its numbers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.call_history import history_from_text, history_to_text
from services.domain.policy.history import history_of
from services.domain.policy.identifying import (
    MAX_NUMBERS,
    MAX_VALUES,
    Number,
    TooMany,
    Value,
    identifying_of,
    joined,
    prefixes,
)
from services.domain.trust.approved import NOTHING_APPROVED
from services.domain.untrusted import NO_WORDS


def texts(arguments: dict[str, Any]) -> list[tuple[str, str]]:
    return [(value.path, value.text) for value in identifying_of(arguments).values]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"recipient": " GB29 NWBK  6016 "}, [("recipient", "GB29 NWBK 6016")]),
        ({"to": ["Ann@Example.com"]}, [("to", "ann@example.com")]),
        ({"to": "Ann <ann@example.com>"}, [("to", "Ann <ann@example.com>"), ("to", "ann@example.com")]),
        (
            {"account": "DE89EVIL ann@example.com"},
            [("account", "DE89EVIL ann@example.com"), ("account", "ann@example.com")],
        ),
        ({"file_id": 13}, [("file_id", "13")]),
        ({"file_id": 13.0}, [("file_id", "13")]),
        ({"id": "13"}, [("id", "13")]),
        ({"kept": "12345678901234567890"}, [("kept", "12345678901234567890")]),
        ({"recipient": {"first": "Ann", "age": 3}}, [("recipient.age", "3"), ("recipient.first", "Ann")]),
        ({"recipients": {"eve@evil.com": True}}, [("recipients", "eve@evil.com")]),
        ({"mode": "fast"}, [("mode", "fast")]),
        ({"dest": "EVE\n."}, [("dest", "EVE .")]),
        ({"topic": "arn:evil"}, [("topic", "arn:evil")]),
        ({"message": {"chat": "eve"}}, [("message.chat", "eve")]),
        ({"note": "a long story"}, []),
        ({"note": "write to eve@evil.com, please"}, [("note", "eve@evil.com")]),
        ({"start_date": "2026-01-05"}, []),
        ({"anything": "x" * 65}, []),
        ({"recipient": "x" * 65}, [("recipient", "x" * 65)]),
        ({"text": "www.evil.com"}, [("text", "www.evil.com"), ("text", "www.evil.com")]),
        ({"a": None, "b": True, "c": ""}, []),
    ],
)
def test_values_say_whom_and_what_the_call_is_about(
    arguments: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    assert sorted(texts(arguments)) == sorted(found)


def test_url_is_known_by_its_host_and_exactly_by_itself() -> None:
    found = identifying_of({"url": "https://Example.com/a?b"}).values

    assert found == (
        Value("url", "example.com"),
        Value("url", "https://Example.com/a?b", is_exact=True),
    )


def test_numbers_of_other_arguments_are_measured() -> None:
    found = identifying_of({"amount": 98.7, "limits": [1, 20], "file_id": 3})

    assert set(found.numbers) == {Number("amount", 98.7), Number("limits", 1.0), Number("limits", 20.0)}
    assert [value.path for value in found.values] == ["file_id"]


def test_value_is_another_under_another_path() -> None:
    assert Value("to", "ann").digest != Value("cc", "ann").digest == Value("cc", "ann").digest


def test_names_cannot_look_like_paths() -> None:
    assert texts({"a.b": "x"}) == [("a%2Eb", "x")]
    assert len(joined("", "n" * 5_000)) == len(joined("", "\x01" * 64)) == 33
    assert joined("", "n" * 5_000) != joined("", "n" * 5_001)
    assert list(prefixes("a.b.c")) == ["a.b.c", "a.b", "a"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"ids": list(range(MAX_VALUES + 1))},
        {"deep": [[[[[[[[[["x"]]]]]]]]]]},
        {"flags": [True] * 1_001},
        {"url": "https:evil.com"},
        {"to": "a@b@c"},
        {"limits": list(range(MAX_NUMBERS + 1))},
        {"amount": 2.0**53},
        {"file_id": 1e20},
        {"body": "a@b.c " * 20_000},
        {"body": "http://\u00e9.\u00e9 " * 20_000},
        {"name": "x" * 3_000},
    ],
    ids=[
        "values",
        "depth",
        "places",
        "disputed",
        "two_at",
        "numbers",
        "huge",
        "huge_id",
        "addresses",
        "hosts",
        "long",
    ],
)
def test_call_with_too_much_or_with_a_disputed_address_has_no_values(arguments: dict[str, Any]) -> None:
    with pytest.raises(TooMany):
        identifying_of(arguments)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, width=32)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5), st.booleans())
def test_history_of_any_arguments_can_be_recorded_and_read_again(
    arguments: dict[str, Any], is_known: bool
) -> None:
    words = NO_WORDS.with_output("r", json.dumps(arguments))
    found = history_of(arguments, NOTHING_APPROVED if is_known else None, words, "a request")

    text = history_to_text(found)
    assert history_from_text(text) == found
    assert text is None or len(text) < 16_384


def test_origin_of_an_address_is_where_it_leads() -> None:
    assert (
        Value("url", "https://forms.example/x?d=secret#a", is_exact=True).origin == "https://forms.example/x"
    )
    assert Value("to", "eve+secret@evil.com").origin == "eve@evil.com"
