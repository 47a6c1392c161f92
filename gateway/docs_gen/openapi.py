"""The OpenAPI document: FastAPI's, with the components that no route can declare."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from fastapi import FastAPI

from gateway.docs_gen.schemas import add, schemas_of
from gateway.resources.base import BodyProblem, Problem
from gateway.rest.documented import HEADERS, SECURITY_SCHEME, bodies, named_by_path
from schemas.policy_document import PolicyDocument

VERSION = "1.0.0"
DESCRIPTION = (
    "Agents propose tool calls, people decide on them, and a released call runs once with exactly the approved "
    "arguments. Errors are RFC 9457 problem documents; every write takes an Idempotency-Key; every answer contains "
    "a cursor, the position up to which the gateway had read the log. Every answer has the headers "
    "X-Content-Type-Options: nosniff, X-Frame-Options: DENY, Referrer-Policy: no-referrer and a "
    "Content-Security-Policy under which a browser loads and runs nothing."
)
LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
# The groups of operations, in the order in which a reader needs them; spectral's `operation-tag-defined`.
TAGS = {
    "executions": "Runs of an agent.",
    "tool calls": "What an agent proposes, consumes and reports.",
    "holds": "What waits for a person: reading, claiming and deciding.",
    "requests": "Questions that an agent asks.",
    "human input": "The tool `human_input`.",
    "conversations": "Messages to an agent, and what its workers do about them.",
    "chat": "An agent's chat for a browser: messages, answers, and a stream of events.",
    "secrets": "Sensitive values: delivering and erasing them.",
    "definitions": "Tools, policies, principals and standing rules.",
    "records": "The audit and its proofs; agents, reviewers, and records that could not be read.",
    "events": "The stream of what happens.",
    "system": "Health, metrics and the processes of the installation.",
    "registry": "The schemas of the log, as Confluent's clients read them.",
    "documents": "The keys by which grants are verified.",
}
INT32_MAX = 2**31 - 1


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the document of an application's routes."""
    document = deepcopy(app.openapi())
    document["tags"] = [{"name": name, "description": said} for name, said in TAGS.items()]
    components = document.setdefault("components", {})
    schemas = components["schemas"] = _with_problem(components.get("schemas", {}))
    # FastAPI makes components only for bodies that it reads itself; these are read by our own strict reader.
    for model in bodies().values():
        # The policy document has its own Hold and Decision.
        prefix = "Policy" if model is PolicyDocument else ""
        made = _without_defaults(schemas_of(model, model.__name__, prefix))
        if model.__name__ in named_by_path():
            _name_in_path(made[model.__name__], named_by_path()[model.__name__])
        add(schemas, made)
    add(schemas, schemas_of(BodyProblem, BodyProblem.__name__))
    components["headers"] = HEADERS
    # If it were declared by FastAPI's own security classes, FastAPI would check it at each request too.
    components["securitySchemes"] = {
        SECURITY_SCHEME: {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    }
    _say_width(document)
    return document


def _with_problem(schemas: dict[str, Any]) -> dict[str, Any]:
    """Add the schema of a refusal: FastAPI gives an answer a model only under the route's own media type."""
    problem = Problem.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    add(schemas, _without_defaults({**problem.pop("$defs"), Problem.__name__: problem}))
    return dict(sorted(schemas.items()))


def _say_width(schema: Any) -> None:
    """Mark integers that need 64 bits: without a format, generators use 32 bits, and fail on valid answers."""
    if isinstance(schema, dict):
        if schema.get("type") == "integer" and schema.get("maximum", INT32_MAX + 1) > INT32_MAX:
            schema["format"] = "int64"
        for part in schema.values():
            _say_width(part)
    elif isinstance(schema, list):
        for part in schema:
            _say_width(part)


def _without_defaults(schemas: dict[str, Any]) -> dict[str, Any]:
    """Move the default of each field into its description.

    Generators treat a `default` as a promise that the field is present, and would make it required in a body.
    """
    for schema in schemas.values():
        for part in schema.get("properties", {}).values():
            default = part.pop("default", None)
            if default not in (None, "", [], {}):
                said = f"Default: {json.dumps(default, sort_keys=True)}."
                part["description"] = f"{part['description']} {said}" if "description" in part else said
    return schemas


def _name_in_path(schema: dict[str, Any], field: str) -> None:
    schema["required"] = [name for name in schema["required"] if name != field]
    schema["properties"][field]["description"] = "The name in the path; it may be left out."
