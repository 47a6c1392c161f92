"""A published tool: the operator's word on what a name stands for."""

from collections.abc import Mapping
from typing import Any

from schemas.canonical import MalformedJson, canonical, parse_strict, tool_version_of
from schemas.plain_words import did_you_mean
from schemas.sensitive import marking_problem, public_check
from services.domain.context import LEASE_MS, RUN_TIMEOUT_MS, Tool
from services.domain.input_schema import SchemaCheck, SchemaRefused, check_schema, misfit_in_place
from services.domain.policy.annotations import annotation_problem

FIELDS = frozenset(
    {
        "name",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "idempotent",
        "run_timeout_seconds",
        "lease_seconds",
    }
)
RUN_TIMEOUT_MAX_S = 24 * 60 * 60
# A shorter one would take a sign of life every other second, and each of them stands in the log.
LEASE_MIN_S = 5


class ToolRefused(ValueError):
    """The definition cannot be published; the message says what to mend."""


def tool_from_definition(name: str, text: str, check: SchemaCheck = misfit_in_place) -> Tool:
    """The tool of a definition that was published.

    Args:
        name: under which it was.
        text: canonical JSON.
        check: applies its inputSchema to arguments.

    Raises:
        ToolRefused: an unknown field, another name, or an input schema that is no object.
    """
    definition = _parsed(text)
    _check_fields(name, definition)
    schema = definition.get("inputSchema", {"type": "object"})
    if not isinstance(schema, dict):
        raise ToolRefused("inputSchema must be an object")
    schema_text = canonical(schema)
    return Tool(
        name=name,
        version=tool_version_of(definition),
        definition=definition,
        input_schema=schema_text,
        idempotent=definition.get("idempotent") is True,
        run_timeout_ms=int(definition.get("run_timeout_seconds", RUN_TIMEOUT_MS / 1000) * 1000),
        lease_ms=int(definition.get("lease_seconds", LEASE_MS / 1000) * 1000),
        validate=public_check(schema_text, check),
    )


def unreadable_tool(name: str, version: str, why: str) -> Tool:
    """A tool whose definition was published and cannot be read: its version, and nothing else.

    Its calls are held, so nothing is said of their arguments; a person sees them as they are.
    """
    return Tool(
        name=name,
        version=version,
        definition={},
        input_schema="{}",
        idempotent=False,
        run_timeout_ms=RUN_TIMEOUT_MS,
        lease_ms=LEASE_MS,
        validate=lambda arguments: None,
        unreadable=why,
    )


def tool_to_publish(name: str, text: str) -> Tool:
    """The tool of a definition that somebody asks to publish.

    Raises:
        ToolRefused: see `tool_from_definition`; or its input schema is too large, or not JSON Schema.
    """
    tool = tool_from_definition(name, text)
    try:
        check_schema(schema := parse_strict(tool.input_schema))
    except SchemaRefused as error:
        raise ToolRefused(str(error)) from error
    if (problem := marking_problem(schema)) is not None:
        raise ToolRefused(problem)
    return tool


def _parsed(text: str) -> dict[str, Any]:
    try:
        definition = parse_strict(text)
    except MalformedJson as error:
        raise ToolRefused(str(error)) from error
    if not isinstance(definition, dict):
        raise ToolRefused("a tool's definition is a JSON object")
    return definition


def _check_fields(name: str, definition: Mapping[str, Any]) -> None:
    if unknown := sorted(definition.keys() - FIELDS):
        near = did_you_mean(unknown[0], FIELDS)
        raise ToolRefused(f"unknown field {unknown[0]!r}{near}: a typo here would change what is allowed")
    if definition.get("name") != name:
        raise ToolRefused(f"the definition's name must be {name!r}")
    annotations = definition.get("annotations", {})
    if not isinstance(annotations, dict):
        raise ToolRefused("annotations must be an object")
    if (problem := annotation_problem(annotations)) is not None:
        raise ToolRefused(f"annotations.{problem}")
    if not isinstance(definition.get("idempotent", False), bool):
        raise ToolRefused("idempotent must be true or false")
    if not 0 < _seconds(definition, "run_timeout_seconds", 1) <= RUN_TIMEOUT_MAX_S:
        raise ToolRefused(f"run_timeout_seconds must be above 0 and at most {RUN_TIMEOUT_MAX_S}")
    if not LEASE_MIN_S <= _seconds(definition, "lease_seconds", LEASE_MIN_S) <= RUN_TIMEOUT_MAX_S:
        raise ToolRefused(f"lease_seconds must be {LEASE_MIN_S} to {RUN_TIMEOUT_MAX_S}")


def _seconds(definition: Mapping[str, Any], name: str, default: float) -> float:
    """A number of the definition; what is none is -1, which no bound takes."""
    seconds = definition.get(name, default)
    return -1.0 if isinstance(seconds, bool) or not isinstance(seconds, int | float) else seconds
