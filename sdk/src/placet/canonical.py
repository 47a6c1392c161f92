"""RFC 8785 canonical JSON of arguments, read back strictly, and the digest that an approval binds to."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, NoReturn

import rfc8785

MAX_SAFE_INTEGER = 2**53 - 1
MAX_DEPTH = 64
# From here on RFC 8785 writes an exponent, so that the number is read back as a float. Such numbers are now refused;
# those that were recorded before are still read.
_EXPONENT_FROM = 1e21
_NAMED = frozenset({int, float, bool, bytes, type(None)})


class MalformedJson(ValueError):
    """The text is not JSON that has one canonical form."""


def check_json(value: Any, where: str) -> None:
    """Refuse a value that is not JSON, or that changes when it is written as JSON and read back.

    Args:
        value: what to check.
        where: the name to show, such as `amount`; parts of it are named after it.

    Raises:
        TypeError: not one of str, int, float, bool, None, list, tuple, dict with string keys; subclasses
            (enums, numpy scalars) are refused too, because the tool would get the plain value.
        ValueError: a number or text that JSON can't carry.
    """
    _check(value, where, 0, recorded=False)


def _check(value: Any, where: str, depth: int, *, recorded: bool) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"{where} is nested deeper than {MAX_DEPTH} levels")
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise TypeError(f"{where} has the key {_shown_key(key)}: keys of a JSON object are strings")
            _check_text(key, where)
            _check(item, f"{where}.{key}", depth + 1, recorded=recorded)
    elif kind is list or kind is tuple:
        for index, item in enumerate(value):
            _check(item, f"{where}[{index}]", depth + 1, recorded=recorded)
    elif kind is str:
        _check_text(value, where)
    elif kind is int or kind is float:
        _check_number(value, where, recorded=recorded)
    elif value is not None and kind is not bool:
        raise TypeError(
            f"{where} is a {kind.__module__}.{kind.__qualname__}, which is not a JSON value:"
            " give str, int, float, bool, None, list or dict"
        )


def _shown_key(key: Any) -> str:
    """A key as text, without running its own code."""
    kind = type(key)
    return repr(key) if kind in _NAMED else f"of the type {kind.__module__}.{kind.__qualname__}"


def _check_text(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{where} has a lone surrogate, which is not Unicode text") from error


def _check_number(number: float, where: str, *, recorded: bool) -> None:
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError(f"{where} is {number}, which is not a JSON number")
    if abs(number) > MAX_SAFE_INTEGER and (
        isinstance(number, int) or not recorded or abs(number) < _EXPONENT_FROM
    ):
        raise ValueError(f"{where} is beyond ±(2^53 − 1), where JSON numbers lose digits: send a string")


def canonical(value: Any) -> bytes:
    """The RFC 8785 form of a JSON value.

    Raises:
        TypeError: it is not a JSON value.
        ValueError: it has no canonical form.
    """
    _check(value, "the value", 0, recorded=True)
    return rfc8785.dumps(value)


def parse_strict(text: str | bytes) -> Any:
    """Parse JSON that has exactly one meaning.

    Raises:
        MalformedJson: duplicate keys, NaN, a number out of range, an unsafe integer, a lone surrogate, or
            no JSON at all.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
        _check(value, "the value", 0, recorded=True)
    except MalformedJson:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise MalformedJson(f"not JSON with one meaning: {error}") from error
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedJson("an object has the same key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise MalformedJson(f"{name} is not JSON")


def sha256_hex(data: bytes) -> str:
    """SHA-256 as 64 hex characters."""
    return hashlib.sha256(data).hexdigest()


def call_digest(tenant: str, agent: str, tool: str, tool_version: str, arguments: Any) -> str:
    """The digest that an approval binds to.

    SHA-256 of RFC 8785 JSON over {tenant, agent, tool, tool_version, arguments} (docs/log-contract.md).

    Args:
        tenant: of the token.
        agent: the proposing agent.
        tool: its name.
        tool_version: SHA-256 of its canonical definition; empty for an unknown tool.
        arguments: the JSON object that would run.
    """
    subject = {
        "tenant": tenant,
        "agent": agent,
        "tool": tool,
        "tool_version": tool_version,
        "arguments": arguments,
    }
    return sha256_hex(canonical(subject))
