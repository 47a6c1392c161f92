import time
from typing import Any

import pytest

from schemas.canonical import canonical
from schemas.json_schema import schema_problem, validator_of


@pytest.mark.parametrize(
    ("schema", "path", "said"),
    [
        ({"type": "nonsense"}, ".type", "is not JSON Schema"),
        ({"properties": {"a": {"minimum": "x"}}}, ".properties.a.minimum", "is not JSON Schema"),
        ({"allOf": [5]}, ".allOf[0]", "is not JSON Schema"),
        ({"$schema": 5}, ".$schema", "must be a string"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, ".$schema", "draft-03"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": 5}, ".items", "is not JSON Schema"),
        ({"$schema": "http://127.0.0.1:9/never-fetched", "type": 5}, ".type", "is not JSON Schema"),
        ({"properties": {"a": {"$schema": "https://x"}}}, ".properties.a.$schema", "the top"),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, ".properties.a.pattern", "look-around"),
        ({"patternProperties": {"(": {}}}, ".patternProperties", "cannot be used"),
        ({"pattern": "(" * 3000 + ")" * 3000}, ".pattern", "cannot be used"),
        ({"allOf": [{"pattern": f"x{n}[a-z]{{900}}"} for n in range(300)]}, ".allOf", "too large together"),
        (
            {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
            ".unevaluatedProperties",
            "not supported",
        ),
        ({"description": "x" * 70_000}, "", "is limited to"),
        ({"type": "array"}, ".type", 'must be "object"'),
        ({"type": ["string", "null"]}, ".type", 'must be "object"'),
        ({"$ref": "http://127.0.0.1:9/never-fetched.json"}, "", "nothing is fetched"),
        ({"properties": {"a": {"items": {"$ref": "other.json#/a"}}}}, "", "nothing is fetched"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"a": {}}}, "", "#/$defs/b"),
        ({"properties": {"a": {"$ref": "#nowhere"}}}, "", "#nowhere"),
        ({"properties": {"a": {"$ref": "http://[broken"}}}, "", ""),
    ],
)
def test_schema_problem_says_where_and_what(schema: dict[str, Any], path: str, said: str) -> None:
    problem = schema_problem(schema)

    assert problem is not None
    assert problem.path.startswith(path)
    assert said in problem.message


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z]+$"}}},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/a", "$defs": {"a": {}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}},
        {"type": ["object", "null"], "properties": {"next": {"$ref": "#"}}},
        {"$id": "https://x.example/s", "$defs": {"a": {"$id": "a", "$anchor": "b"}}, "$ref": "a#b"},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/a",
            "definitions": {"a": {}},
        },
        {"properties": {"$ref": {"type": "string"}}},
        {"x-ui": {"order": 1}, "examples": [{"$schema": 5}]},
    ],
)
def test_schema_problem_of_a_plain_schema_is_none(schema: dict[str, Any]) -> None:
    assert schema_problem(schema) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{}] * 15_000},
        {"properties": {f"a{n}": {"type": "string", "minLength": 1} for n in range(1_500)}},
        {"allOf": [{"pattern": f"{n}\\pL{{100}}"} for n in range(2_000)]},
        {"allOf": [{"$ref": "#"}] * 3_900},
        {"$defs": {"a": {}}, "allOf": [{"$id": f"{n}", "$ref": "#"} for n in range(2_300)]},
        {"$ref": "#" + "/allOf/0" * 2_000, "allOf": [{"$ref": "#nowhere"}]},
    ],
)
def test_case_31_schema_of_64_kib_is_looked_at_in_bounded_time(schema: dict[str, Any]) -> None:
    start = time.process_time()

    schema_problem(schema)

    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"pattern": "^a"}, "ab", True),
        ({"pattern": "^a"}, "b", False),
        ({"pattern": "^a"}, 5, True),
        ({"patternProperties": {"^x": {"type": "string"}}}, {"x1": "a", "y": 5}, True),
        ({"patternProperties": {"^x": {"type": "string"}}}, {"x1": 5}, False),
        ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"x": 1, "y": 2}, False),
        (
            {"patternProperties": {"^x": {}}, "additionalProperties": {"type": "string"}},
            {"x": 1, "y": "2"},
            True,
        ),
        ({"patternProperties": {"^x": {}}, "additionalProperties": {"type": "string"}}, {"y": 2}, False),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, True),
        ({"properties": {"a": {"patternProperties": {"^x": False}}}}, {"a": {"x": 1}}, False),
    ],
)
def test_validator_of_reads_patterns_as_json_schema_does(schema: Any, value: Any, fits: bool) -> None:
    assert (next(validator_of(canonical(schema)).iter_errors(value), None) is None) is fits
