"""A published tool: the operator's word on what a name stands for."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import jsonschema
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from schemas.canonical import MalformedJson, canonical, parse_strict, tool_version_of
from services.domain.context import RUN_TIMEOUT_MS, Tool

HINTS = frozenset({"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})
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
    }
)
RUN_TIMEOUT_MAX_S = 24 * 60 * 60


class ToolRefused(ValueError):
    """The definition cannot be published; the message says what to mend."""


def tool_from_definition(name: str, text: str) -> Tool:
    """The tool of a canonical definition.

    Raises:
        ToolRefused: an unknown field, another name, or an input schema that is not JSON Schema.
    """
    definition = _parsed(text)
    _check_fields(name, definition)
    schema = definition.get("inputSchema", {"type": "object"})
    return Tool(
        name=name,
        version=tool_version_of(definition),
        definition=definition,
        input_schema=canonical(schema),
        idempotent=definition.get("idempotent") is True,
        run_timeout_ms=int(definition.get("run_timeout_seconds", RUN_TIMEOUT_MS / 1000) * 1000),
        validate=_validation(canonical(schema)),
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
    if unknown := sorted(definition.keys() - FIELDS):
        raise ToolRefused(f"unknown field {unknown[0]!r}: a typo here would change what is allowed")
    if definition.get("name") != name:
        raise ToolRefused(f"the definition's name must be {name!r}")
    annotations = definition.get("annotations", {})
    if not isinstance(annotations, dict):
        raise ToolRefused("annotations must be an object")
    for hint, value in annotations.items():
        if hint != "title" and (hint not in HINTS or not isinstance(value, bool)):
            raise ToolRefused(f"annotations.{hint}: one of {', '.join(sorted(HINTS))}, true or false")
    if not isinstance(definition.get("idempotent", False), bool):
        raise ToolRefused("idempotent must be true or false")
    seconds = definition.get("run_timeout_seconds", 1)
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 < seconds <= RUN_TIMEOUT_MAX_S
    ):
        raise ToolRefused(f"run_timeout_seconds must be above 0 and at most {RUN_TIMEOUT_MAX_S}")


@lru_cache(maxsize=1024)
def _validation(schema_text: str) -> Callable[[Any], str | None]:
    validator = _validator(parse_strict(schema_text))

    def misfit(arguments: Any) -> str | None:
        try:
            error = jsonschema.exceptions.best_match(validator.iter_errors(arguments))
        except (Unresolvable, RecursionError) as broken:
            return f"the tool's inputSchema cannot be applied: {type(broken).__name__}"
        return None if error is None else f"{error.json_path}: {error.message}"[:500]

    return misfit


def _validator(schema: Any) -> Validator:
    if not isinstance(schema, dict):
        raise ToolRefused("inputSchema must be an object")
    if not isinstance(schema.get("$schema", ""), str):
        raise ToolRefused("inputSchema.$schema must be a string")
    cls = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        cls.check_schema(schema)
    except jsonschema.exceptions.SchemaError as error:
        raise ToolRefused(f"inputSchema is not JSON Schema: {error.message}") from error
    # The default registry fetches unknown references over the network.
    return cls(schema, registry=Registry())
