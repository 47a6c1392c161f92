"""One fixed message of each type, made of its fields' names: what golden bytes and tables are made of."""

from __future__ import annotations

import types
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from schemas.message import Message


def full(model: type[Message]) -> Message:
    """A message with every field set, none like another."""
    return _sample(model, bare=False)


def bare(model: type[Message]) -> Message:
    """A message with every field empty, or null where it may be."""
    return _sample(model, bare=True)


def _sample(model: type[Message], bare: bool) -> Message:
    value = _bare if bare else _full
    fields = model.model_fields.items()
    return model(**{name: value(name, field.annotation, at) for at, (name, field) in enumerate(fields, 1)})


def _full(name: str, annotation: Any, at: int) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return arguments[-1]
    if origin in (Union, types.UnionType, Annotated):
        return _full(name, arguments[0], at)
    if origin is tuple:
        return (f"{name} 1", f"{name} ü")
    if origin is dict:
        return {f"acme/tool/{name}": at, f"acme/policy/{name}": 2**40 + at}
    return (
        _last_of(annotation)
        or {str: f"{name} — {at}", int: 2**33 + at, float: at + 0.1, bool: True}[annotation]
    )


def _bare(name: str, annotation: Any, at: int) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return arguments[0]
    if origin in (Union, types.UnionType) and type(None) in arguments:
        return None
    if origin is Annotated:
        return _bare(name, arguments[0], at)
    if origin in (tuple, dict):
        return origin()
    return _last_of(annotation) or {str: "", int: -1, float: 0.0, bool: False}[annotation]


def _last_of(annotation: Any) -> StrEnum | None:
    is_enum = isinstance(annotation, type) and issubclass(annotation, StrEnum)
    return list(annotation)[-1] if is_enum else None
