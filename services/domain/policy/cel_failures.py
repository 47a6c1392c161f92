"""The reason for a failed evaluation: the function and the kinds of its arguments, not the binding's own message."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from services.domain.policy.cel_operands import ADDED_MAP, NEGATED_TRUTH
from services.domain.policy.cel_program import NOT_FINITE, checked_duration, path_start
from services.domain.policy.cel_times import checked_timestamp
from services.domain.policy.cel_tokens import Token, call_arguments, string_value

_KINDS: dict[type, str] = {
    str: "a text",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    dict: "a map",
    list: "a list",
    type(None): "null",
    bytes: "bytes",
    datetime: "a time",
    timedelta: "a duration",
}
# The binding's message for a function that it has, but not for values of this kind.
_NO_OVERLOAD = re.compile(r"Undefined variable or function: '(\w+)'")
_TEXTS, _NUMBERS = frozenset({str}), frozenset({str, float, int})
_TAKEN: dict[str, tuple[str, frozenset[type]]] = {
    "int": ("numbers and texts, and times", _NUMBERS),
    "uint": ("numbers and texts", _NUMBERS),
    "double": ("numbers and texts", _NUMBERS),
    "string": ("texts, numbers, truth values, bytes, times and durations", _NUMBERS | {bool}),
    "bytes": ("texts", _TEXTS),
    # They take texts, but only some.
    "timestamp": ("texts such as '2026-01-05T12:00:00Z' and whole seconds such as int(args.n)", frozenset()),
    "duration": ("texts such as '1h30m'", frozenset()),
    "size": ("texts, lists, maps and bytes", frozenset({str, list, dict})),
    "contains": ("texts", _TEXTS),
    "startsWith": ("texts", _TEXTS),
    "endsWith": ("texts", _TEXTS),
}
# The prefix that the binding adds to the message of a Python function.
_OWN = re.compile(r"Function '\w+' error: Python function call failed: \w+: (.*)")
_READ: dict[str, Callable[[object], str | None]] = {
    "timestamp": checked_timestamp,
    "duration": checked_duration,
}
_NOTHING = object()
# The meanings of the functions that do not exist.
_MEANT = {
    NOT_FINITE: "a number that it computes is not finite, as after a division by zero",
    NEGATED_TRUTH: "`-` was given a truth value; it takes numbers",
    ADDED_MAP: "`+` was given a map; it takes numbers, texts, lists, bytes, times and durations",
}

Tokens = tuple[Token, ...]


def kind_of(value: Any) -> str:
    """The kind of a value, in words."""
    return _KINDS.get(type(value), "of another kind")


def reason_of(error: BaseException, tokens: Tokens, values: Mapping[str, Any]) -> str:
    """The reason why an expression with these tokens failed on these values."""
    if isinstance(error, KeyError):
        return f"there is no field {error.args[0]!r}; guard it with has()"
    if not isinstance(error, Exception):
        return type(error).__name__
    said = first_line(error)
    missing = _NO_OVERLOAD.match(said)
    if missing is None:
        own = _OWN.match(said)
        return (own.group(1) if own else said).split(". ")[0]
    name = missing.group(1)
    if name in _MEANT:
        return _MEANT[name]
    return _of_call(name, tokens, values)


def first_line(error: Exception) -> str:
    """The first line of an error's message."""
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__


def _of_call(name: str, tokens: Tokens, values: Mapping[str, Any]) -> str:
    if name not in _TAKEN:
        return f"{name}() was given a value of a kind that it does not take"
    taken, kinds = _TAKEN[name]
    for path in _given(name, tokens):
        value = _value_at(path, values)
        if type(value) is str and name in _READ and _READ[name](value) is not None:
            continue
        if value is not _NOTHING and type(value) not in kinds:
            given = "".join(token.text for token in path)
            what = "a text that it cannot read" if type(value) is str and "texts" in taken else kind_of(value)
            return f"{name}() was given {what}, {given}; it takes {taken}"
    return f"{name}() was given what it does not take; it takes {taken}"


def _given(name: str, tokens: Tokens) -> Iterator[Tokens]:
    """The paths into the tool call's values that a function gets, as its receiver or as arguments."""
    for index in range(len(tokens) - 1):
        if tokens[index].text != name or tokens[index + 1].text != "(":
            continue
        ends = [index - 2] if index > 1 and tokens[index - 1].text == "." else []
        arguments = [argument for argument in call_arguments(tokens, index + 1) if argument]
        for end in ends:
            if (start := path_start(tokens, end)) is not None:
                yield tokens[start : end + 1]
        for argument in arguments:
            if path_start(argument, len(argument) - 1) == 0:
                yield argument


def _value_at(path: Tokens, values: Mapping[str, Any]) -> Any:
    value: Any = values
    for token in path:
        if token.kind == "op":
            continue
        key = string_value(token.text) if token.kind == "string" else token.text
        if isinstance(value, list) and token.kind == "number" and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, Mapping) and key in value:
            value = value[key]
        else:
            return _NOTHING
    return value
