"""Tools are published in the form of MCP's own model; what is wrong with a definition is told at once, with paths."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from schemas.canonical import canonical, tool_version_of
from schemas.policy_problems import PROBLEMS_MAX, PolicyRefused
from schemas.tool_definition import NOT_KEPT, ToolDefinition, tool_to_publish

# `mcp.types.Tool.model_dump(mode="json", by_alias=True)` of mcp 2.3.0: two of its server, one with everything.
MCP_TOOLS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "mcp_tools.json").read_text())
SCHEMA = Draft202012Validator(ToolDefinition.model_json_schema())


def problems(given: Any, name: str = "t") -> dict[str, str]:
    with pytest.raises(PolicyRefused) as refused:
        tool_to_publish(name, given)
    return {problem.path: problem.message for problem in refused.value.problems}


@pytest.mark.parametrize("given", MCP_TOOLS, ids=lambda given: str(given["name"]))
def test_tool_of_mcps_own_model_is_taken_with_its_nulls(given: dict[str, Any]) -> None:
    found = tool_to_publish(given["name"], given)

    SCHEMA.validate(given)
    assert not found.keys() & NOT_KEPT
    assert found["inputSchema"] == given["inputSchema"]
    assert {name: given[name] for name in found if name != "annotations"} == {
        name: value for name, value in found.items() if name != "annotations"
    }
    stated = {name: hint for name, hint in (given["annotations"] or {}).items() if hint is not None}
    assert found.get("annotations", {}) == stated


@pytest.mark.parametrize("given", MCP_TOOLS, ids=lambda given: str(given["name"]))
def test_version_of_a_tool_is_the_same_with_and_without_what_is_not_kept(given: dict[str, Any]) -> None:
    bare = {name: value for name, value in given.items() if value is not None and name not in NOT_KEPT}
    if "annotations" in bare:
        bare["annotations"] = {k: v for k, v in bare["annotations"].items() if v is not None}

    assert tool_to_publish(given["name"], given) == bare
    assert tool_version_of(tool_to_publish(given["name"], given)) == tool_version_of(bare)


def test_null_inside_of_a_schema_stays() -> None:
    schema = {"type": "object", "properties": {"note": {"type": ["string", "null"], "default": None}}}

    assert tool_to_publish("t", {"inputSchema": schema})["inputSchema"] == schema


def test_every_fault_of_a_definition_is_told_at_once_with_its_path() -> None:
    given = {
        "name": "other",
        "foo": 1,
        "idempotend": True,
        "readOnlyHint": True,
        "lease_seconds": 1,
        "run_timeout_seconds": 10**6,
        "idempotent": "yes",
        "annotations": {"readonlyHint": True, "destructiveHint": "no"},
        "inputSchema": {"properties": {"a": {"pattern": "["}}},
        "_meta": 5,
    }

    found = problems(given)

    assert found.keys() == {
        *("name", "foo", "idempotend", "readOnlyHint", "lease_seconds", "run_timeout_seconds", "idempotent"),
        *(
            "annotations.readonlyHint",
            "annotations.destructiveHint",
            "inputSchema.properties.a.pattern",
            "_meta",
        ),
    }
    assert found["idempotend"] == "unknown field 'idempotend'; did you mean 'idempotent'?"
    assert found["readOnlyHint"] == "unknown field 'readOnlyHint' here; it belongs in annotations"
    assert found["annotations.readonlyHint"].endswith("did you mean 'readOnlyHint'?")
    assert found["lease_seconds"] == "a number of at least 5 is needed here, found 1"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("lease_second", "lease_seconds"),
        ("run_timeout", "run_timeout_seconds"),
        ("Idempotent", "idempotent"),
        ("input_schema", "inputSchema"),
        ("annotation", "annotations"),
        ("_mta", "_meta"),
    ],
)
def test_misspelt_field_names_the_right_spelling(written: str, meant: str) -> None:
    assert problems({written: 5}) == {written: f"unknown field {written!r}; did you mean {meant!r}?"}


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ([], "definition"),
        ({"inputSchema": None}, "inputSchema"),
        ({"idempotent": None}, "idempotent"),
        ({"lease_seconds": True}, "lease_seconds"),
        ({"icons": {}}, "icons"),
        ({"inputSchema": {"x-placet-sensitive": True}}, "inputSchema"),
    ],
)
def test_what_says_nothing_that_could_be_meant_is_refused(given: Any, path: str) -> None:
    assert problems(given).keys() == {path}


def test_case_31_a_definition_of_nothing_but_faults_names_the_first() -> None:
    assert len(problems({f"f{n}": n for n in range(10_000)})) == PROBLEMS_MAX


def test_name_that_is_none_is_refused_by_model_and_schema_alike() -> None:
    for name in ("with space", "a/b", "", "x" * 129, "é"):
        assert "name" in problems({}, name)
        assert not SCHEMA.is_valid({"name": name})


def test_schema_of_the_model_takes_what_is_published() -> None:
    definition = {"name": "t", "lease_seconds": 5, "run_timeout_seconds": 0.5, "idempotent": True}

    SCHEMA.validate(definition)
    assert canonical(tool_to_publish("t", definition)) == canonical(definition)
