"""What a schema says of a call is read once for each value, and within one budget for the whole call."""

from __future__ import annotations

import time
from typing import Any

import pytest

from services.domain.policy import text_terms
from services.domain.policy.described import MAX_LOOKED_AT, Descriptions, Vague
from services.domain.policy.trust_class import terms_of
from services.domain.words import plain

BODY: dict[str, Any] = {"properties": {"body": {}}}
LONG = "\u00e9%  " * 12_000


def many(count: int, schema: dict[str, Any]) -> list[Any]:
    # Equal, but not the same objects.
    return [{}, *(dict(schema) for _ in range(count))]


def ladder(width: int) -> dict[str, Any]:
    """Alternatives at each step, whose number multiplies if each is followed by itself."""
    return {
        "$defs": {
            "A": {"anyOf": many(width, {"items": {"$ref": "#/$defs/B"}})},
            "B": {"anyOf": [{}, *({"const": str(one)} for one in range(width))]},
        },
        "anyOf": many(width, {"properties": {"a": {"$ref": "#/$defs/A"}}}),
    }


def test_alternatives_within_alternatives_add_up() -> None:
    described = Descriptions(ladder(40))
    items = described.of_call().member("a").items

    assert items.lists("7")
    assert described.looked_at < 400
    assert items is not described.of_call().member("a")
    found = terms_of({"a": [f"x{n % 3}" for n in range(60)]}, {"inputSchema": ladder(40)})
    assert found == "a#=1e1~20x&a=~#1e0"


def test_description_of_items_is_read_once_for_all() -> None:
    schema = {"properties": {"a": {"items": {"anyOf": [{"const": str(n)} for n in range(1_000)]}}}}

    assert terms_of({"a": ["1", "2"] * 90}, {"inputSchema": schema}) == "a#=180~90x&a='1'&a='2'"


def test_work_is_bounded_where_each_alternative_is_looked_at_for_each_member() -> None:
    schema: dict[str, Any] = {"anyOf": [{"properties": {f"p{one}": {}}} for one in range(2_000)]}

    assert terms_of({"p0": True}, {"inputSchema": schema}) == "p0=true"
    assert terms_of({f"p{one}": True for one in range(20)}, {"inputSchema": schema}) is None


def test_schema_with_more_than_the_budget_leaves_the_call_in_no_class() -> None:
    nested: dict[str, Any] = {"const": "keep"}
    for _ in range(6):
        nested = {"anyOf": [nested, *({"const": str(one)} for one in range(1_000))]}
    schema = {"properties": dict.fromkeys("ab", nested)}

    assert terms_of({"a": "keep"}, {"inputSchema": schema}) == "a='keep'"
    assert terms_of({"a": "keep", "b": "keep"}, {"inputSchema": schema}) is None
    with pytest.raises(Vague):
        Descriptions({"anyOf": [True] * (MAX_LOOKED_AT + 1)}).of_call()


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"e": {"anyOf": many(60, BODY)}}},
        {"allOf": many(60, {"properties": {"e": {"properties": {"body": {}}}}})},
        {"patternProperties": {f"^(e|x{one})": dict(BODY) for one in range(60)}},
        {"dependentSchemas": {f"k{one}": {"properties": {"e": dict(BODY)}} for one in range(60)}},
        {"properties": {"e": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"anyOf": many(60, BODY)}}},
    ],
)
def test_text_is_read_once_however_many_schemas_describe_it(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def counted(text: str) -> str:
        read.append(text)
        return plain(text)

    monkeypatch.setattr(text_terms, "plain", counted)

    assert terms_of({"e": {"body": LONG}}, {"inputSchema": schema}) == "e.body=text"
    assert read == [LONG]


@pytest.mark.parametrize("count", [100, 1_000])
def test_listed_values_are_read_once_for_all_items(count: int) -> None:
    """In the time of a few hundred look-ups, and not of one for each listed value and item."""
    listed = {"enum": [str(one) for one in range(100 * count)]}
    schema = {
        "$defs": {"L": listed},
        "properties": {name: {"$ref": "#/$defs/L"} for name in map(str, range(150))},
    }
    arguments = {str(one): str(one) for one in range(150)}

    began = time.thread_time()
    found = terms_of(arguments, {"inputSchema": schema})
    assert time.thread_time() - began < 0.5
    assert str(found).startswith("sha256=")
