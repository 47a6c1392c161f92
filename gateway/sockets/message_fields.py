"""The fields that each message of a client may have: one that is not known is refused, as in a REST body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from gateway.problems import ERRORS_MAX, Problem, quoted_path
from gateway.sockets.protocol import CLIENT_MESSAGES, type_of
from schemas.refusals import Refusal
from schemas.trace_context import TRACEPARENT

_MODELS: Mapping[str, type[BaseModel]] = {type_of(model): model for model in CLIENT_MESSAGES}
_FIELDS: Mapping[str, frozenset[str]] = {
    kind: frozenset((*model.model_fields, TRACEPARENT)) for kind, model in _MODELS.items()
}


def type_of_message(frame: Mapping[str, Any]) -> str:
    """Return the type of a client's message.

    Raises:
        Problem: 422, the protocol has no message of this type.
    """
    kind = frame.get("type")
    if not isinstance(kind, str) or kind not in _MODELS:
        raise Problem(Refusal.INVALID, f"type: name one of {', '.join(sorted(_MODELS))}")
    return kind


def check_fields(frame: Mapping[str, Any], kind: str) -> None:
    """Refuse a message with a field that its type does not have.

    Without this a misspelled `cursor` would start again from a snapshot, and a misplaced id would be lost.

    Raises:
        Problem: 422, with every such field.
    """
    unknown = sorted(frame.keys() - _FIELDS[kind])[:ERRORS_MAX]
    if unknown:
        errors = [
            {"path": quoted_path((name,)), "code": "extra_forbidden", "message": _advice(kind, name)}
            for name in unknown
        ]
        raise Problem(Refusal.INVALID, f"{errors[0]['path']}: {errors[0]['message']}", errors=errors)


def _advice(kind: str, name: str) -> str:
    body = _MODELS[kind].model_fields.get("body")
    model = None if body is None else body.annotation
    if isinstance(model, type) and issubclass(model, BaseModel) and name in model.model_fields:
        return "this field belongs into body"
    if name == "body":
        return "this message has its fields beside type: put them there"
    return "this field is unknown; remove it"
