"""The OpenAPI document: FastAPI's, with the bodies that our own strict reader reads."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from gateway.docs_gen.schemas import add, schemas_of
from gateway.resources.base import BodyProblem
from gateway.rest.documented import bodies, named_by_path, parameter_json
from gateway.rest.parameters import PROJECT
from schemas.policy_document import PolicyDocument

VERSION = "1.0.0"
INT32_MAX = 2**31 - 1
DESCRIPTION = (
    "Agents propose tool calls, people decide on them, and a released call runs once with exactly the approved "
    "arguments. Errors are RFC 9457 problem documents; every write takes an Idempotency-Key; every answer carries "
    "the cursor of how far the gateway had read. Every answer has the headers X-Content-Type-Options: nosniff, "
    "X-Frame-Options: DENY, Referrer-Policy: no-referrer and a Content-Security-Policy under which a browser loads "
    "and runs nothing."
)
# Headers of answers, by name.
HEADERS: dict[str, dict[str, Any]] = {
    "WWW-Authenticate": {
        "description": "How to come in: a bearer token in the header Authorization.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "After how many seconds to ask again. Without it asking again soon helps nobody.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "Accept-Encoding": {
        "description": "What a body may be coded as: `identity`, as it is.",
        "required": True,
        "schema": {"type": "string"},
    },
}
# Which of them a refusal has, by its status.
HEADERS_OF = {
    "401": "WWW-Authenticate",
    "415": "Accept-Encoding",
    "429": "Retry-After",
    "503": "Retry-After",
}
LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
GUARDED = "/v1/"
PROBLEM = "application/problem+json"
# What any request may be told of its head (`gateway.server.heads`).
ANY_HEAD = {"400": "A header stands twice", "401": "A token is in the URL"}

# And of any body, by the same.
ANY_BODY = {
    "description": "The body has a Content-Encoding",
    "content": {PROBLEM: {"schema": {"$ref": f"#/components/schemas/{BodyProblem.__name__}"}}},
}


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The document of an application's routes."""
    document: dict[str, Any] = get_openapi(
        title="Placet",
        version=VERSION,
        description=DESCRIPTION,
        license_info=LICENSE,
        routes=app.routes,
        openapi_version="3.1.0",
        # Relative to where the document was found: a gateway does not know the names that it is reached by.
        servers=[{"url": "/"}],
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for model in bodies().values():
        # The policy document has a Hold and a Decision of its own.
        prefix = "Policy" if model is PolicyDocument else ""
        made = _without_defaults(schemas_of(model, model.__name__, prefix))
        if model.__name__ in named_by_path():
            _name_in_path(made[model.__name__], named_by_path()[model.__name__])
        add(schemas, made)
    add(schemas, schemas_of(BodyProblem, BodyProblem.__name__))
    components["headers"] = HEADERS
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["security"] = [{"bearer": []}] if path.startswith(GUARDED) else []
            if path.startswith(GUARDED):
                operation.setdefault("parameters", []).append(parameter_json(PROJECT))
            for status, problem in ANY_HEAD.items():
                operation["responses"].setdefault(status, {"description": problem, "content": {PROBLEM: {}}})
            _say_problems(operation)
            if "requestBody" in operation:
                operation["responses"]["415"] = ANY_BODY.copy()
            _say_headers(operation)
    _say_width(document)
    return document


def _say_width(schema: Any) -> None:
    """Name integers that need 64 bits: without a format generators make 32 of them, and read no legal answer."""
    if isinstance(schema, dict):
        if schema.get("type") == "integer" and schema.get("maximum", INT32_MAX + 1) > INT32_MAX:
            schema["format"] = "int64"
        for part in schema.values():
            _say_width(part)
    elif isinstance(schema, list):
        for part in schema:
            _say_width(part)


def _without_defaults(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas with what a field left out counts as in its description.

    Generators take a `default` for a promise that the field is there, and would have it required in a body.
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


def _say_problems(operation: dict[str, Any]) -> None:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for answer in operation["responses"].values():
        if "application/problem+json" in answer.get("content", {}):
            answer["content"] = {"application/problem+json": problem}


def _say_headers(operation: dict[str, Any]) -> None:
    for status, answer in operation["responses"].items():
        name = HEADERS_OF.get(status)
        if name is not None and PROBLEM in answer.get("content", {}):
            answer["headers"] = {name: {"$ref": f"#/components/headers/{name}"}}
