"""The compiled validator and the one in Python are of one mind, wherever the compiled one is asked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.canonical import MAX_SAFE_INTEGER, canonical
from schemas.json_schema import first_misfit
from schemas.plain_schema import MAX_WORK, compiled, surely_fits

NAMES = st.sampled_from(["a", "b", "c", "é"])
INTEGERS = st.integers(-3, 3) | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
FLOATS = st.sampled_from(
    [-1.0, -0.5, 0.0, -0.0, 1.0, 1.5, 2.0, 3.25, 1e21, 1e300, 5e-324, 0.1, 0.30000000000000004]
)
NUMBERS = INTEGERS | FLOATS | st.floats(-(2.0**53) + 1, 2.0**53 - 1)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text("aé𝄞", max_size=4)


def values() -> st.SearchStrategy[Any]:
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
        max_leaves=8,
    )


SIZES = st.integers(0, 4)
TYPES = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])


def _with_parts(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(inner, min_size=1, max_size=3)
    by_name = st.dictionaries(NAMES, inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": by_name,
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": some,
            "allOf": some,
            "anyOf": some,
            "oneOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "propertyNames": inner,
            "dependentSchemas": by_name,
        },
    )


OF_VALUES = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(values(), min_size=1, max_size=4),
        "const": values(),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
        "minimum": NUMBERS,
        "maximum": NUMBERS,
        "exclusiveMinimum": NUMBERS,
        "exclusiveMaximum": NUMBERS,
        "minLength": SIZES,
        "maxLength": SIZES,
        "minItems": SIZES,
        "maxItems": SIZES,
        "minProperties": SIZES,
        "maxProperties": SIZES,
        "title": st.text("ab", max_size=2),
        "default": values(),
        "format": st.sampled_from(["email", "date-time", "made-up"]),
        "x-placet-sensitive": st.booleans(),
    },
)
SCHEMAS = st.recursive(
    OF_VALUES | st.booleans(),
    lambda inner: st.tuples(OF_VALUES, _with_parts(inner)).map(lambda both: both[0] | both[1]),
    max_leaves=6,
)


@given(schema=OF_VALUES | SCHEMAS, value=values())
def test_fits_says_of_any_plain_schema_what_the_validator_in_python_says(schema: Any, value: Any) -> None:
    text = canonical(schema)

    assert compiled(text) is not None
    assert surely_fits(text, value) == (first_misfit(text, value) is None)


@given(value=values(), other=values())
def test_fits_finds_the_same_values_equal(value: Any, other: Any) -> None:
    for one in (other, value):
        text = canonical({"const": one})

        assert surely_fits(text, value) == (first_misfit(text, value) is None)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "a"},
        {"properties": {"a": {"patternProperties": {"a": True}}}},
        {"multipleOf": 0.1},
        {"items": {"uniqueItems": True}},
        {"$ref": "#/$defs/a", "$defs": {"a": True}},
        {"allOf": [{"unevaluatedProperties": False}]},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"dependentSchemas": {"a": {"$id": "x"}}},
        {"contains": True, "minContains": 2},
        {"type": "text"},
        {"required": "a"},
    ],
)
def test_schema_that_the_two_may_read_differently_is_never_compiled(schema: dict[str, Any]) -> None:
    text = canonical(schema)

    assert compiled(text) is None
    assert not surely_fits(text, {})


def test_value_that_could_be_much_work_is_left_to_who_can_be_killed() -> None:
    text = canonical({"type": "object"})
    large = {"a": "x" * (MAX_WORK // len(text))}

    assert not surely_fits(text, large)
    assert first_misfit(text, large) is None
