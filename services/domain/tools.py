"""A published tool: the operator's definition of what a name stands for."""

from collections.abc import Callable, Mapping
from typing import Any

from schemas.canonical import MalformedJson, canonical, parse_strict, tool_version_of
from schemas.policy_problems import PolicyRefused
from schemas.sensitive import public_check
from schemas.tool_definition import form_problems
from services.domain.context import LEASE_MS, RUN_TIMEOUT_MS, Tool
from services.domain.input_schema import misfit_in_place

# Fields that no decision uses: in a published definition, stored under its name, they can have any form.
UNDECIDED = frozenset(
    {"name", "title", "description", "outputSchema", "annotations.title", "icons", "execution", "_meta"}
)
# Applies a schema (canonical JSON) to arguments, for the tool's tenant.
OwnCheck = Callable[[str, Any], str | None]


class ToolRefused(ValueError):
    """The published definition contains something that this version cannot read; the message says what."""


def tool_from_definition(name: str, text: str, check: OwnCheck = misfit_in_place) -> Tool:
    """The tool of a published definition.

    Args:
        name: the name under which it was published.
        text: canonical JSON.
        check: applies its inputSchema (canonical JSON) to arguments.

    Raises:
        ToolRefused: an unknown field, another name, or an input schema that is not an object.
    """
    definition = _parsed(text)
    _check_fields(name, definition)
    schema = definition.get("inputSchema", {"type": "object"})
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
    """A tool whose published definition cannot be read: only its version is known.

    Its calls are held, so their arguments are not checked; a person sees them unchanged.
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


def _parsed(text: str) -> dict[str, Any]:
    try:
        definition = parse_strict(text)
    except MalformedJson as error:
        raise ToolRefused(str(error)) from error
    if not isinstance(definition, dict):
        raise ToolRefused("a tool's definition is a JSON object")
    return definition


def _check_fields(name: str, definition: Mapping[str, Any]) -> None:
    problems = tuple(one for one in form_problems(definition) if one.path not in UNDECIDED)
    if problems:
        raise ToolRefused(PolicyRefused(problems).in_full())
    if definition.get("name") != name:
        raise ToolRefused(f"the definition's name must be {name!r}")
