"""Which arguments a schema marks, and what stands for them."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.canonical import canonical
from schemas.sensitive import (
    MARK,
    Marked,
    astray,
    at_path,
    commitment_of,
    is_placeholder,
    marked_values,
    marking_problem,
    misfit_of,
    placeholders,
    pointer,
    public_check,
    public_schema,
    replaced,
    unsealed,
)

SECRET = {"type": "string", "minLength": 4, MARK: True}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "token": SECRET,
        "logins": {"type": "array", "items": {"type": "object", "properties": {"pin": SECRET}}},
    },
}
HELD = {"handle": "sec_" + "0" * 32, "commitment": "a" * 64}


def test_marked_values_are_found_where_properties_and_items_lead() -> None:
    arguments = {"to": "a", "token": "hush", "logins": [{"pin": "1234"}, {}, {"pin": "5678"}]}

    found = marked_values(SCHEMA, arguments)

    assert [(one.path, one.value) for one in found] == [
        (("token",), "hush"),
        (("logins", 0, "pin"), "1234"),
        (("logins", 2, "pin"), "5678"),
    ]


def test_replaced_leaves_what_it_was_given_and_puts_the_values_back() -> None:
    arguments = {"token": "hush", "logins": [{"pin": "1234"}], "to": "a"}
    public = replaced(arguments, {one.path: HELD for one in marked_values(SCHEMA, arguments)})

    assert arguments["token"] == "hush"
    assert "hush" not in json.dumps(public)
    assert [pointer(path) for path, *_ in placeholders(public)] == ["/token", "/logins/0/pin"]
    assert replaced(public, {("token",): "hush", ("logins", 0, "pin"): "1234"}) == arguments
    assert at_path(public, ("logins", 0, "pin")) == HELD
    assert at_path(public, ("logins", 7, "pin")) is None


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (
            {"properties": {"a": {"$ref": "#/$defs/s"}}, "$defs": {"s": SECRET}},
            "reached by properties and items",
        ),
        ({"properties": {"a": {"anyOf": [SECRET]}}}, "reached by properties and items"),
        ({"additionalProperties": SECRET}, "reached by properties and items"),
        ({"properties": {"a": {MARK: "yes"}}}, "true or left out"),
        ({"properties": {"a": {MARK: True, "pattern": "(a+)+$"}}}, "pattern"),
        ({"properties": {"a": {MARK: True, "properties": {"b": {"$ref": "#"}}}}}, "$ref"),
        ({MARK: True}, "not all of them"),
    ],
)
def test_mark_that_could_not_be_kept_to_is_refused(schema: Any, why: str) -> None:
    problem = marking_problem(schema)

    assert problem is not None
    assert why in problem


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"a": {"b": [{"c": "x"}]}, "d": "x"}, None),
        ({"a": {}, "d": ["x"]}, None),
        ({"a": None}, ("a",)),
        ({"a": "x"}, ("a",)),
        ({"a": ["x"]}, ("a",)),
        ({"a": {"b": {"c": "x"}}}, ("a", "b")),
        ({"a": {"b": [{"c": "x"}, ["x"]]}}, ("a", "b", 1)),
    ],
    ids=str,
)
def test_astray_is_what_no_marked_value_can_stand_in(arguments: Any, found: Any) -> None:
    item = {"type": ["object", "null"], "properties": {"c": {MARK: True}}}
    inner = {"type": "object", "properties": {"b": {"type": "array", "items": item}}}
    schema = {"type": "object", "properties": {"a": inner, "d": {"type": "object"}}}
    assert astray(schema, arguments) == found
    assert astray({"properties": {"a": {"properties": {"b": {MARK: True}}}}}, {"a": "of any type"}) is None


def test_property_that_is_only_named_like_the_mark_marks_nothing() -> None:
    schema = {"properties": {MARK: {"type": "string"}}}

    assert marking_problem(schema) is None
    assert marked_values(schema, {MARK: "plain"}) == []


def test_public_check_takes_sealed_values_only_and_quotes_nothing() -> None:
    answers = ["$.to: 'hush' is not of type 'number'", "hush", None]
    asked: list[str] = []

    def check(text: str, arguments: Any) -> str | None:
        asked.append(text)
        return answers.pop(0)

    checked = public_check(canonical(SCHEMA), check)

    unsaid = "this does not fit the tool's inputSchema"
    assert [checked({"token": HELD}) for _ in range(3)] == [f"$.to: {unsaid}", f"$: {unsaid}", None]
    assert not any("hush" in text for text in asked)
    refusal = checked({"token": "hush"})
    assert refusal is not None
    assert refusal.startswith("$.token: ")
    assert "hush" not in refusal
    assert unsealed(SCHEMA, {"token": {"handle": "sec_1", "commitment": "x"}}) is not None


def test_public_schema_asks_for_what_stands_for_the_value() -> None:
    public = public_schema(SCHEMA)

    assert public["properties"]["token"]["required"] == ["handle", "commitment"]
    assert SCHEMA["properties"]["token"] is SECRET


def test_misfit_of_a_value_names_the_place_and_the_keyword_and_not_the_value() -> None:
    assert misfit_of(Marked(("token",), "hush", SECRET)) is None

    misfit = misfit_of(Marked(("token",), "abc", SECRET))

    assert misfit == "$.token: the value does not fit its schema (minLength)"


def test_misfit_of_a_value_that_is_too_much_work_is_not_looked_for() -> None:
    huge = Marked(("token",), [0] * 100_000, {"items": {"enum": list(range(100))}, MARK: True})

    misfit = misfit_of(huge)

    assert misfit is not None
    assert "too large" in misfit


@given(st.binary(min_size=32, max_size=32), st.text())
def test_commitment_is_the_digest_of_nonce_and_canonical_value(nonce: bytes, text: str) -> None:
    value = canonical(text)

    found = commitment_of(nonce, value)

    assert found == hashlib.sha256(nonce + value.encode()).hexdigest()
    assert is_placeholder({"handle": HELD["handle"], "commitment": found})


def test_placeholders_are_found_in_order_at_any_depth_and_nothing_in_them() -> None:
    sealed = {"handle": f"sec_{'0' * 32}", "commitment": "a" * 64}
    value = {"l": [1, [sealed], {"a": sealed}], "m": {"n": {"o": sealed}}, "none": None}
    assert [pointer(path) for path, *_ in placeholders(value)] == ["/l/1/0", "/l/2/a", "/m/n/o"]
    assert placeholders(sealed) == [((), sealed["handle"], sealed["commitment"])]
    assert placeholders("text") == []
