"""What the OpenAPI document says of a route, declared on the route; FastAPI makes the document of it.

A body and the parameters are read by our own strict readers, after it is known who asks; so they are declared for the
document only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel

from gateway import resources as r
from gateway.resources.base import BodyProblem
from gateway.rest.parameters import IDEMPOTENCY_KEY, PROJECT, Parameter
from gateway.words.verb import Words

Handler = TypeVar("Handler", bound=Callable[..., Any])
Declared = dict[str, Any]
Answers = dict[int | str, dict[str, Any]]
SECURITY_SCHEME = "bearer"
PROBLEM = "application/problem+json"
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
    401: "WWW-Authenticate",
    415: "Accept-Encoding",
    429: "Retry-After",
    503: "Retry-After",
}
# Whatever is asked with a token may be refused so, and whatever has a body besides.
ANY, WITH_BODY = (401, 403, 422, 429, 503), (400, 413)

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


def _component(model: type[BaseModel]) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def refusals(
    *statuses: int, description: str = "A refusal (RFC 9457)", model: type[BaseModel] = r.Problem
) -> Answers:
    """Answers that are problem documents, with the headers that each has."""
    content = {PROBLEM: {"schema": _component(model)}}
    found: Answers = {}
    for status in sorted(statuses):
        found[status] = {"description": description, "content": content}
        if status in HEADERS_OF:
            name = HEADERS_OF[status]
            found[status]["headers"] = {name: {"$ref": f"#/components/headers/{name}"}}
    return found


# What any request may be told of its head (`gateway.server.heads`).
ANY_HEAD: Answers = {
    **refusals(400, description="A header stands twice"),
    **refusals(401, description="A token is in the URL"),
}
# And of any body, by the same.
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
    """What a route says that takes a token.

    Args:
        models: what it answers, by the status; what the document says of it where that is no model.
        problems: the refusals that it may give, beside those of `ANY` and `WITH_BODY`.
        body: the model of its body; its schema is added to the document's components.
        named: the field of the body that the path gives where it is left out.
        any_value: what the route does with a body that does not fit the model, where it answers that too.
        parameters: of its query and headers, beside those of every route.
        media_types: what the body may be sent as.
        writes: whether it takes an Idempotency-Key.
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
    """What a route says that anybody may ask; the arguments are as of `operation`."""
    asked = {} if body is None else _request_body(body, "", "", media_types)
    return _declared(answers or {}, parameters, asked, [])


def change(model: type[BaseModel], body: type[BaseModel], parameters: Sequence[Parameter] = ()) -> Declared:
    """What a route says that asks the decider to change one thing: its answer, its refusals, its body."""
    return operation({200: model}, 404, 409, body=body, parameters=parameters, writes=True)


def verb_route(
    router: APIRouter, subject: str, verb: Words[Any], said: Declared
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
