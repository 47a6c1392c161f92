"""What the OpenAPI document says of a route whose body is read by our own strict reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from gateway import resources as r

PROBLEM: dict[str, Any] = {"model": r.Problem, "description": "A refusal (RFC 9457)"}
AFTER = ("after", "string", "Answer no older than this cursor.")
WAIT = ("wait", "number", "Seconds to wait, 60 at most.")
CURSOR = ("cursor", "string", "Where the last page ended.")
LIMIT = ("limit", "integer", "Items a page.")

Query = tuple[str, str, str]

# The models of all bodies that routes take, by name: the document's components are made of them.
_BODIES: dict[str, type[BaseModel]] = {}
# Of those that the path names: which field.
_NAMED: dict[str, str] = {}


def bodies() -> Mapping[str, type[BaseModel]]:
    """The models of the bodies that the routes declared, by name."""
    return _BODIES


def named_by_path() -> Mapping[str, str]:
    """The field of a body, by the name of its model, that counts as the name in the path where it is left out."""
    return _NAMED


def documented(
    *,
    body: type[BaseModel] | None = None,
    named: str = "",
    query: Sequence[Query] = (),
    media_types: Sequence[str] = ("application/json",),
    writes: bool = False,
) -> dict[str, Any]:
    """The `openapi_extra` of a route.

    Args:
        body: the model of its body; its schema is added to the document's components.
        named: the field of the body that the path gives where it is left out.
        query: name, JSON type and description of its query parameters.
        media_types: what the body may be sent as.
        writes: whether it takes an Idempotency-Key.
    """
    parameters = [_parameter("query", *one) for one in query]
    if writes:
        text = "A repeat under the same key gets the first answer again, unless that was 429 or 503."
        parameters.append(_parameter("header", "Idempotency-Key", "string", text))
    extra: dict[str, Any] = {"parameters": parameters} if parameters else {}
    if body is not None:
        if _BODIES.setdefault(body.__name__, body) is not body:
            raise ValueError(f"two bodies have the name {body.__name__}")
        if named:
            _NAMED[body.__name__] = named
        schema = {"$ref": f"#/components/schemas/{body.__name__}"}
        needed = {name for name, field in body.model_fields.items() if field.is_required()}
        extra["requestBody"] = {
            "required": bool(needed - {named}),
            "content": {media_type: {"schema": schema} for media_type in media_types},
        }
    return extra


def answers(models: Mapping[int, type[BaseModel]], *problems: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route: models of what it answers, and which refusals it may give."""
    found: dict[int | str, dict[str, Any]] = {
        status: {"model": model, "description": (model.__doc__ or "").strip().split("\n")[0]}
        for status, model in models.items()
    }
    for status in sorted({401, 422, 429, 503, *problems}):
        found[status] = {**PROBLEM, "content": {"application/problem+json": {}}}
    return found


def change(model: type[BaseModel], body: type[BaseModel]) -> dict[str, Any]:
    """What a route says that asks the decider to change one thing: its answer, its refusals, its body."""
    return {
        "responses": answers({200: model}, 400, 403, 404, 409, 413, 422),
        "openapi_extra": documented(body=body, writes=True),
    }


def _parameter(where: str, name: str, kind: str, description: str) -> dict[str, Any]:
    return {
        "in": where,
        "name": name,
        "required": False,
        "description": description,
        "schema": {"type": kind},
    }
