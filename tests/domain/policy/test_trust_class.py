"""The class of a call: equal for calls that people judge alike; numbers, addresses and risks make others."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.policy.trust_class import MAX_CHARS, NO_CLASS, class_of, terms_of

SCHEMA = {
    "inputSchema": {
        "type": "object",
        "properties": {
            "priority": {"type": "string", "enum": ["low", "high"]},
            "to": {"type": "array", "items": {"type": "string", "enum": ["sales", "legal"]}},
            "options": {"type": "object", "properties": {"mode": {"enum": ["dry", "wet"]}}},
        },
    }
}


def class_for(arguments: dict[str, Any], *risk: str) -> str:
    return class_of(terms_of(arguments, SCHEMA), risk or ("writes",))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "risk=writes"),
        ({"amount": 100}, "amount=1e2&risk=writes"),
        ({"amount": 999.99}, "amount=1e2&risk=writes"),
        ({"amount": 1000.0}, "amount=1e3&risk=writes"),
        ({"amount": -12}, "amount=-1e1&risk=writes"),
        ({"amount": 0.05}, "amount=1e-2&risk=writes"),
        ({"amount": 1e-6}, "amount=1e-6&risk=writes"),
        ({"amount": "0.0000001"}, "amount=1e-7&risk=writes"),
        ({"amount": 0}, "amount=0&risk=writes"),
        ({"amount": 1e308}, "amount=1e308&risk=writes"),
        ({"amount": float("nan")}, "amount=infinite&risk=writes"),
        ({"amount": 10**400}, "amount=infinite&risk=writes"),
        ({"urgent": True}, "urgent=true&risk=writes"),
        ({"note": None}, "note=~null&risk=writes"),
        ({"note": {}, "more": {"inner": {}}}, "more.inner={}&note={}&risk=writes"),
        ({"priority": "high"}, "priority='high'&risk=writes"),
        ({"priority": "whatever"}, "priority=text&risk=writes"),
        ({"text": "Dear all, see you at 12:30"}, "text=text&risk=writes"),
        ({"path": "C:/tmp/a.txt"}, "path=~name&risk=writes"),
        ({"amount": "600000"}, "amount=1e5&risk=writes"),
        ({"mail": "Ann@Example.com"}, "mail=@example.com&risk=writes"),
        ({"mail": "say hi @ noon"}, "mail=text&risk=writes"),
        ({"text": "@Ann: look at https://a.example/x, please."}, "text=a.example&risk=writes"),
        ({"mail": "Eve <eve@evil.com>, ann@example.com"}, "mail=@evil.com&mail=@example.com&risk=writes"),
        ({"url": "www.evil.com/x"}, "url=www.evil.com&risk=writes"),
        ({"url": "https://Example.com:8443/a?b"}, "url=example.com&risk=writes"),
        ({"to": ["sales"]}, "to#=1e0&to='sales'&risk=writes"),
        ({"to": []}, "to#=0&risk=writes"),
        ({"mails": ["a@x.com", "b@x.com"]}, "mails#=1e0&mails=@x.com&risk=writes"),
        ({"mails": [f"a{n}@x.com" for n in range(12)]}, "mails#=1e1&mails=@x.com&risk=writes"),
        (
            {"rows": [{"n": 1, "to": "a@x.com"}, {"n": 50}]},
            "rows=sha256:b5393d50f46c4ac8a6f7523c3858deec&risk=writes",
        ),
        ({"amounts": [101, 500.5]}, "amounts#=2&amounts=1e2&risk=writes"),
        ({"amounts": [5] * 9}, "amounts#=9~9x&amounts=1e0&risk=writes"),
        ({"folder": " "}, "folder=~blank&risk=writes"),
        ({"": {"to": "x"}}, "~.to=text&risk=writes"),
        ({"options": {"mode": "wet"}}, "options.mode='wet'&risk=writes"),
    ],
)
def test_class_of_arguments(arguments: dict[str, Any], expected: str) -> None:
    assert class_for(arguments) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": {"b": {"c": {"d": {"e": 1}}}}},
        {"many": list(range(500))},
    ],
)
def test_call_of_which_a_class_would_say_too_little_is_in_none(arguments: dict[str, Any]) -> None:
    assert class_for(arguments) == NO_CLASS


def test_lists_behind_references_and_alternatives_are_found() -> None:
    action = {"anyOf": [{"$ref": "#/$defs/Action"}, {"type": "null"}]}
    schema = {
        "inputSchema": {
            "$defs": {"Action": {"enum": ["read", "delete"]}, "Loop": {"$ref": "#/$defs/Loop"}},
            "properties": {"action": action, "mode": {"const": "dry"}, "loop": {"$ref": "#/$defs/Loop"}},
        }
    }

    found = class_of(terms_of({"action": "delete", "mode": "dry", "loop": "x"}, schema), ())

    assert found == "action='delete'&loop=text&mode='dry'&risk="


LISTS = {"enum": ["keep", "delete"]}


@pytest.mark.parametrize(
    ("schema", "arguments", "terms"),
    [
        ({"additionalProperties": LISTS}, {"reply": "keep"}, "reply='keep'"),
        ({"unevaluatedProperties": LISTS}, {"reply": "keep"}, "reply='keep'"),
        ({"patternProperties": {"^re": LISTS}}, {"reply": "keep"}, "reply='keep'"),
        ({"dependentSchemas": {"to": {"properties": {"reply": LISTS}}}}, {"reply": "keep"}, "reply='keep'"),
        ({"properties": {"reply": {"prefixItems": [LISTS]}}}, {"reply": ["keep"]}, "reply#=1e0&reply='keep'"),
        (
            {"anyOf": [LISTS], "properties": {"reply": {"$ref": "#/anyOf/0"}}},
            {"reply": "keep"},
            "reply='keep'",
        ),
        ({"properties": {"step": {"enum": [1, 2, 3]}}}, {"step": 2}, "step='2'"),
        ({"properties": {"share": {"enum": [0.1, 0.5]}}}, {"share": 0.5}, "share='0.5'"),
        ({"properties": {"step": {"enum": [1, 2, 3]}}}, {"step": 4}, "step=1e0"),
        ({"properties": {"step": {"enum": [True]}}}, {"step": 1}, "step=1e0"),
        ({"properties": {"reply": {"$ref": "#"}}}, {"reply": "keep"}, "reply=text"),
        ({"properties": {"reply": {"$ref": "https://example.com/reply.json"}}}, {"reply": "keep"}, None),
        ({"properties": {"reply": {"$ref": "#/$defs/Missing"}}}, {"reply": "keep"}, None),
        ({"properties": {"reply": {"$ref": "#/anyOf/1"}}, "anyOf": [{}]}, {"reply": "keep"}, None),
        ({"properties": {"reply": {"$dynamicRef": "#reply"}}}, {"reply": "keep"}, None),
        (
            {"properties": {"reply": {"anyOf": [{"const": str(n)} for n in range(9_000)]}}},
            {"reply": "keep"},
            None,
        ),
    ],
)
def test_schema_lists_a_text_wherever_it_may_or_the_call_has_no_terms(
    schema: Any, arguments: Any, terms: str | None
) -> None:
    assert terms_of(arguments, {"inputSchema": schema}) == terms


def test_class_names_the_risk_in_a_fixed_order() -> None:
    assert class_for({}, "writes", "money") == class_for({}, "money", "writes") == "risk=money,writes"


def test_values_cannot_pass_for_other_terms() -> None:
    schema = {"inputSchema": {"properties": {"x": {"enum": ["a&risk=reads"]}}}}
    forged = class_of(terms_of({"x": "a&risk=reads"}, schema), ("money",))

    assert forged == "x='a%26risk%3Dreads'&risk=money"
    assert class_for({"amount=1e0&x": 5}) == "amount%3D1e0%26x=1e0&risk=writes"
    assert class_for({"a.b": 5}) != class_for({"a": {"b": 5}})


def test_class_that_would_be_long_is_a_digest_that_only_equal_calls_share() -> None:
    one, other = ({f"field_{number:03}": number + extra for number in range(99)} for extra in (100, 101))

    assert class_for(one) == class_for(one) != class_for(other)
    assert class_for(one).startswith("sha256=")
    assert len(class_for(one)) <= MAX_CHARS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=10), JSON, max_size=6), JSON)
def test_class_of_anything_is_a_short_text(arguments: dict[str, Any], schema: Any) -> None:
    found = class_of(terms_of(arguments, {"inputSchema": schema}), ("writes",))

    assert len(found) <= MAX_CHARS + len("&risk=writes")
    assert found == class_of(
        terms_of(dict(reversed(arguments.items())), {"inputSchema": schema}), ("writes",)
    )


def test_class_of_a_value_of_250_kib_is_short() -> None:
    found = class_for({"body": "x " * 125_000, "mail": "a@" + "x" * 60_000})
    assert re.fullmatch(r"body=sha256:[0-9a-f]{32}&mail=@x{32}~[0-9a-f]{32}&risk=writes", found)


@pytest.mark.parametrize(
    ("listed", "other"),
    [("text", "any text"), ("true", True), ("1e2", 150), ("example.com", "https://example.com")],
)
def test_listed_text_is_in_another_class_than_what_is_like_its_terms(listed: str, other: Any) -> None:
    definition = {"inputSchema": {"properties": {"reply": {"anyOf": [{"enum": [listed]}, {}]}}}}

    assert terms_of({"reply": listed}, definition) != terms_of({"reply": other}, definition)


@pytest.mark.parametrize(
    "text",
    [
        "https://good.com\\evil.com/",
        "https:evil.com/x",
        "//evil.com",
        "mailto:eve@evil.com?cc=ann@example.com",
        "eve@evil.com\0@example.com",
        "eve@evil@example.com",
        "eve%evil.com@example.com",
        "git@github.com:acme/repo.git",
    ],
)
def test_address_that_programs_could_read_differently_is_alike_only_to_itself(text: str) -> None:
    found = class_for({"to": text})

    assert found == class_for({"to": text})
    assert found.startswith("to=sha256:")
    assert found != class_for({"to": f"{text}x"})
