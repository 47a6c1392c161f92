"""From JSON objects to frozen dataclasses: unknown fields are ignored, missing ones take their default."""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from placet.errors import PlacetError

T = TypeVar("T")
_FRACTION = re.compile(r"\.(\d+)")
_Convert = Callable[[Any], Any]


class UnexpectedAnswer(PlacetError, ValueError):
    """The answer lacks a required part: client and gateway do not match, or something between them answers."""

    acts = "operator"


def parse(cls: type[T], data: Any) -> T:
    """Read a frozen dataclass from a JSON object.

    Args:
        cls: the dataclass; a field named `raw` gets the received object.
        data: the object.

    Raises:
        UnexpectedAnswer: not an object, a required field is missing, or a value has another type.
    """
    if not isinstance(data, Mapping):
        raise UnexpectedAnswer(f"{cls.__name__}: expected an object, got {type(data).__name__}")
    found: dict[str, Any] = {}
    for name, convert in _fields(cls):  # type: ignore[arg-type]
        if name == "raw":
            found[name] = data
        elif data.get(name) is not None:
            found[name] = _converted(cls, name, convert, data[name])
    try:
        return cls(**found)
    except TypeError as error:
        raise UnexpectedAnswer(f"{cls.__name__}: {error}") from error


def _converted(cls: type, name: str, convert: _Convert, value: Any) -> Any:
    try:
        return convert(value)
    except (TypeError, ValueError) as error:
        raise UnexpectedAnswer(f"{cls.__name__}.{name}: {error}") from error


@cache
def _fields(cls: Any) -> tuple[tuple[str, _Convert], ...]:
    hints = get_type_hints(cls)
    return tuple((field.name, _converter(hints[field.name])) for field in dataclasses.fields(cls))


def _converter(hint: Any) -> _Convert:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _converter(next(arg for arg in get_args(hint) if arg is not types.NoneType))
    if origin is tuple:
        return _sequence(_converter(get_args(hint)[0]))
    if dataclasses.is_dataclass(hint):
        return lambda value: parse(hint, value)  # type: ignore[arg-type]
    if hint is datetime:
        return parse_time
    if hint in (str, int, float, bool):
        return _scalar(hint)
    if origin is not None and issubclass(origin, Mapping):
        return _object
    return _as_is


def _sequence(convert: _Convert) -> _Convert:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise TypeError(f"expected a list, got {type(value).__name__}")
        return tuple(convert(item) for item in value)

    return read


def _scalar(kind: type) -> _Convert:
    def read(value: Any) -> Any:
        if kind is float and type(value) is int:
            return float(value)
        if type(value) is not kind:
            raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
        return value

    return read


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected an object, got {type(value).__name__}")
    return value


def _as_is(value: Any) -> Any:
    return value


# For messages that say what a time looks like.
TIME_EXAMPLE = "2026-01-05T12:00:00Z"


def parse_time(text: str) -> datetime:
    """An RFC 3339 time as an aware datetime in UTC.

    Raises:
        ValueError: not such a time, or without an offset.
    """
    # Python 3.10 reads neither a Z nor a fraction of other than three or six digits.
    exact = _FRACTION.sub(lambda match: "." + match[1][:6].ljust(6, "0"), text.replace("Z", "+00:00"))
    at = datetime.fromisoformat(exact)
    if at.tzinfo is None:
        raise ValueError(f"the time {text!r} has no offset from UTC")
    return at.astimezone(timezone.utc)
