"""The description of a route in the OpenAPI document, declared on the route; FastAPI makes the document from it.

Our own strict readers read bodies and parameters, after the caller is authenticated; so these are declared only for
the document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel

from gateway import resources as r
from gateway.actions.verb import Action
from gateway.resources.base import BodyProblem
from gateway.rest.parameters import IDEMPOTENCY_KEY, PROJECT, Parameter

Handler = TypeVar("Handler", bound=Callable[..., Any])
Declared = dict[str, Any]
Answers = dict[int | str, dict[str, Any]]
SECURITY_SCHEME = "bearer"
PROBLEM = "application/problem+json"
# Headers of answers, by name.
HEADERS: dict[str, dict[str, Any]] = {
    "WWW-Authenticate": {
        "description": "How to authenticate: with a bearer token in the header Authorization.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "After how many seconds to try again. If it is missing, trying again soon does not help.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "Accept-Encoding": {
        "description": "The content coding that a body may have: only `identity`, which is none.",
        "required": True,
        "schema": {"type": "string"},
    },
}
# The header of a refusal, by its status.
HEADERS_OF = {
    401: "WWW-Authenticate",
    415: "Accept-Encoding",
    429: "Retry-After",
    503: "Retry-After",
}
# The refusals that any request with a token can get, and those that any request with a body can get in addition.
ANY, WITH_BODY = (401, 403, 422, 429, 503), (400, 413)

# The models of all bodies that routes take, by name: the document's components are made from them.
_BODIES: dict[str, type[BaseModel]] = {}
# For bodies whose name is in the path: the field with the name.
_NAMED: dict[str, str] = {}


def bodies() -> Mapping[str, type[BaseModel]]:
    """Return the models of the bodies that the routes declared, by name."""
    return _BODIES


def named_by_path() -> Mapping[str, str]:
    """Return, by the name of a body's model, the field that may be left out because the path contains it."""
    return _NAMED


def _component(model: type[BaseModel]) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def refusals(
    *statuses: int, description: str = "A refusal (RFC 9457)", model: type[BaseModel] = r.Problem
) -> Answers:
    """Return answers that are problem documents, each with its headers."""
    content = {PROBLEM: {"schema": _component(model)}}
    found: Answers = {}
    for status in sorted(statuses):
        found[status] = {"description": description, "content": content}
        if status in HEADERS_OF:
            name = HEADERS_OF[status]
            found[status]["headers"] = {name: {"$ref": f"#/components/headers/{name}"}}
    return found


# The refusals of any request because of its head (`gateway.server.request_heads`).
ANY_HEAD: Answers = {
    **refusals(400, description="A header appears twice"),
    **refusals(401, description="A token is in the URL"),
}
# The refusal of any body, by the same module.
_ANY_BODY = refusals(415, description="The body has a Content-Encoding", model=BodyProblem)


def operation(
    models: Mapping[int, type[BaseModel] | dict[str, Any]],
    *problems: int,
    body: type[BaseModel] | None = None,
    named: str = "",
    any_value: str = "",
    parameters: Sequence[Parameter] = (),
    media_types: Sequence[str] = ("application/json",),
    writes: bool = False,
) -> Declared:
    """Declare a route that takes a token.

    Args:
        models: the answers, by status: a model, or the entry in the document if the answer has no model.
        problems: the statuses of its refusals, in addition to those of `ANY` and `WITH_BODY`.
        body: the model of its body; its schema is added to the document's components.
        named: the field of the body that the path gives if the body leaves it out.
        any_value: what the route does with a body that does not fit the model, if it answers that too.
        parameters: its query parameters and headers, in addition to those of every route.
        media_types: the media types that the body can have.
        writes: True if it takes an Idempotency-Key.
    """
    answers: Answers = {
        status: model if isinstance(model, dict) else _of_model(model) for status, model in models.items()
    }
    taken = (*parameters, *((IDEMPOTENCY_KEY,) if writes else ()), PROJECT)
    found = {*ANY, *problems, *(() if body is None else WITH_BODY)}
    return _declared(
        answers | refusals(*found),
        taken,
        {} if body is None else _request_body(body, named, any_value, media_types),
        [{SECURITY_SCHEME: []}],
    )


def open_operation(
    answers: Mapping[int | str, dict[str, Any]] | None = None,
    *,
    body: type[BaseModel] | None = None,
    parameters: Sequence[Parameter] = (),
    media_types: Sequence[str] = ("application/json",),
) -> Declared:
    """Declare a route that needs no token; arguments as `operation`."""
    asked = {} if body is None else _request_body(body, "", "", media_types)
    return _declared(answers or {}, parameters, asked, [])


def change(model: type[BaseModel], body: type[BaseModel], parameters: Sequence[Parameter] = ()) -> Declared:
    """Declare a route that sends the decider one change: its answer, its refusals, its body."""
    return operation({200: model}, 404, 409, body=body, parameters=parameters, writes=True)


def verb_route(
    router: APIRouter, subject: str, verb: Action[Any], said: Declared
) -> Callable[[Handler], Handler]:
    """Declare the route of an action on a subject, `POST {subject}/{verb}`, with its description in the document."""
    return router.post(
        f"{subject}/{verb.name}",
        name=verb.name,
        operation_id=verb.operation,
        description=verb.says,
        **said,
    )


def parameter_json(parameter: Parameter) -> dict[str, Any]:
    """A parameter as the OpenAPI document describes it."""
    return {
        "in": parameter.where,
        "name": parameter.name,
        "required": parameter.required,
        "description": parameter.description,
        "schema": dict(parameter.schema),
    }


def _declared(
    answers: Mapping[int | str, dict[str, Any]],
    parameters: Sequence[Parameter],
    body: dict[str, Any],
    security: list[dict[str, list[str]]],
) -> Declared:
    extra: dict[str, Any] = {"parameters": [parameter_json(one) for one in parameters]} if parameters else {}
    if body:
        extra["requestBody"] = body
    return {
        "responses": {**answers, **(_ANY_BODY if body else {})},
        "openapi_extra": {**extra, "security": security},
    }


def _request_body(
    body: type[BaseModel], named: str, any_value: str, media_types: Sequence[str]
) -> dict[str, Any]:
    if _BODIES.setdefault(body.__name__, body) is not body:
        raise ValueError(f"two bodies have the name {body.__name__}")
    if named:
        _NAMED[body.__name__] = named
    schema = {"description": any_value} if any_value else _component(body)
    needed = {name for name, field in body.model_fields.items() if field.is_required()}
    return {
        "required": bool(needed - {named}),
        "content": {media_type: {"schema": schema} for media_type in media_types},
    }


def _of_model(model: type[BaseModel]) -> dict[str, Any]:
    return {"model": model, "description": (model.__doc__ or "").strip().split("\n")[0]}
