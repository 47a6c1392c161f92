"""What the OpenAPI document says of a route whose body is read by our own strict reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel

from gateway import resources as r
from gateway.rest.parameters import IDEMPOTENCY_KEY, Parameter
from gateway.words.verb import Words

Handler = TypeVar("Handler", bound=Callable[..., Any])
PROBLEM: dict[str, Any] = {"model": r.Problem, "description": "A refusal (RFC 9457)"}

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
    any_value: str = "",
    parameters: Sequence[Parameter] = (),
    media_types: Sequence[str] = ("application/json",),
    writes: bool = False,
) -> dict[str, Any]:
    """The `openapi_extra` of a route.

    Args:
        body: the model of its body; its schema is added to the document's components.
        named: the field of the body that the path gives where it is left out.
        any_value: what the route does with a body that does not fit the model, where it answers that too.
        parameters: of its query and headers, beside those of every route.
        media_types: what the body may be sent as.
        writes: whether it takes an Idempotency-Key.
    """
    taken = [*parameters, IDEMPOTENCY_KEY] if writes else parameters
    extra: dict[str, Any] = {"parameters": [parameter_json(one) for one in taken]} if taken else {}
    if body is not None:
        if _BODIES.setdefault(body.__name__, body) is not body:
            raise ValueError(f"two bodies have the name {body.__name__}")
        if named:
            _NAMED[body.__name__] = named
        schema: dict[str, Any] = {"$ref": f"#/components/schemas/{body.__name__}"}
        if any_value:
            schema = {"description": any_value}
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
    for status in sorted({401, 403, 422, 429, 503, *problems}):
        found[status] = {**PROBLEM, "content": {"application/problem+json": {}}}
    return found


def change(
    model: type[BaseModel], body: type[BaseModel], parameters: Sequence[Parameter] = ()
) -> dict[str, Any]:
    """What a route says that asks the decider to change one thing: its answer, its refusals, its body."""
    return {
        "responses": answers({200: model}, 400, 403, 404, 409, 413, 422),
        "openapi_extra": documented(body=body, parameters=parameters, writes=True),
    }


def verb_route(
    router: APIRouter, subject: str, verb: Words[Any], said: Mapping[str, Any]
) -> Callable[[Handler], Handler]:
    """The route of what may be done to a subject: `POST {subject}/{verb}`, and what the document says of it."""
    return router.post(
        f"{subject}/{verb.name}",
        name=verb.name,
        operation_id=verb.operation,
        description=verb.says,
        **said,
    )


def parameter_json(parameter: Parameter) -> dict[str, Any]:
    """A parameter of an operation."""
    return {
        "in": parameter.where,
        "name": parameter.name,
        "required": parameter.required,
        "description": parameter.description,
        "schema": dict(parameter.schema),
    }
