"""The OpenAPI document: FastAPI's, with the bodies that our own strict reader reads."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from gateway import bodies
from schemas.policy_document import PolicyDocument

VERSION = "1.0.0"
BODIES: tuple[type[BaseModel], ...] = (
    bodies.StartExecution,
    bodies.ProposeToolCall,
    bodies.ConsumeGrant,
    bodies.ReportResult,
    bodies.RenewLease,
    bodies.RevokeGrant,
    bodies.PauseExecution,
    bodies.ResumeExecution,
    bodies.CancelExecution,
    bodies.CompleteExecution,
    bodies.FailExecution,
    bodies.RequestHumanInput,
    bodies.DecideHold,
    bodies.DecideHolds,
    bodies.DelegateHold,
    bodies.ExtendHold,
    bodies.Nothing,
    bodies.ToolDefinition,
)
DESCRIPTION = (
    "Agents propose tool calls, people decide on them, and a released call runs once with exactly the approved "
    "arguments. Errors are RFC 9457 problem documents; every write takes an Idempotency-Key; every answer carries "
    "the cursor of how far the gateway had read."
)
GUARDED = "/v1/"


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The document of an application's routes."""
    document: dict[str, Any] = get_openapi(
        title="Placet", version=VERSION, description=DESCRIPTION, routes=app.routes, openapi_version="3.1.0"
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for model in BODIES:
        _add(schemas, schemas_of(model))
    # The policy document has a Hold and a Decision of its own.
    _add(schemas, schemas_of(PolicyDocument, prefix="Policy"))
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if path.startswith(GUARDED):
                operation["security"] = [{"bearer": []}]
            _say_problems(operation)
    return document


def schemas_of(model: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    """The JSON Schemas of a model and of what it refers to, by name; the latter's names after a prefix."""
    schema = model.model_json_schema(ref_template=f"#/components/schemas/{prefix}{{model}}")
    parts: dict[str, Any] = schema.pop("$defs", {})
    return {**{prefix + name: part for name, part in parts.items()}, model.__name__: schema}


def _add(schemas: dict[str, Any], more: dict[str, Any]) -> None:
    for name, schema in more.items():
        if schemas.setdefault(name, schema) != schema:
            raise ValueError(f"two schemas have the name {name}")


def _say_problems(operation: dict[str, Any]) -> None:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for answer in operation["responses"].values():
        if "application/problem+json" in answer.get("content", {}):
            answer["content"] = {"application/problem+json": problem}
