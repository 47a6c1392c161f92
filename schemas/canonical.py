"""Strict JSON at every door, RFC 8785 canonical JSON, and the digests made of it.

Python's own reader takes duplicate keys, NaN, 1e400 and lone surrogates. None of them has one canonical
form, so all are refused here, before anything is digested.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import rfc8785

from schemas.limits import JSON_MAX_DEPTH

MAX_SAFE_INTEGER = 2**53 - 1


class MalformedJson(ValueError):
    """The text is not JSON that has one canonical form; the message says what to mend."""


def parse_strict(text: str | bytes) -> Any:
    """Parse JSON that has exactly one meaning.

    Args:
        text: JSON text; bytes must be UTF-8.

    Returns:
        The parsed value.

    Raises:
        MalformedJson: duplicate keys, NaN or Infinity, a number out of range, an integer beyond
            ±(2^53 − 1), a lone surrogate, nesting beyond 64 levels, or no JSON at all.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_safe_integer,
        )
    except MalformedJson:
        raise
    except (ValueError, RecursionError) as error:
        raise MalformedJson(f"not valid JSON: {error}") from error
    check_value(value)
    return value


def check_value(value: Any, depth: int = 0) -> None:
    """Refuse a parsed value that has no canonical form.

    Raises:
        MalformedJson: see `parse_strict`.
    """
    if depth > JSON_MAX_DEPTH:
        raise MalformedJson(f"nested deeper than {JSON_MAX_DEPTH} levels")
    if isinstance(value, str):
        _no_surrogates(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise MalformedJson("object keys must be strings")
            _no_surrogates(key)
            check_value(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            check_value(item, depth + 1)
    else:
        _check_scalar(value)


def canonical(value: Any) -> str:
    """The RFC 8785 canonical JSON of a value.

    Raises:
        MalformedJson: the value has no canonical form.
    """
    try:
        return rfc8785.dumps(value).decode()
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise MalformedJson(str(error)) from error


def sha256_hex(text: str | bytes) -> str:
    """SHA-256 as 64 hex characters."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def call_digest(tenant: str, agent: str, tool: str, tool_version: str, arguments: str) -> str:
    """The digest that an approval binds to.

    SHA-256 of RFC 8785 JSON over {tenant, agent, tool, tool_version, arguments}.

    Args:
        tenant: of the token.
        agent: who asks.
        tool: its name.
        tool_version: SHA-256 of its canonical definition; empty for an unknown tool.
        arguments: canonical JSON already.
    """
    # The keys stand in RFC 8785's order and `arguments` is canonical, so no second pass over it is needed.
    text = (
        f'{{"agent":{canonical(agent)},"arguments":{arguments},"tenant":{canonical(tenant)},'
        f'"tool":{canonical(tool)},"tool_version":{canonical(tool_version)}}}'
    )
    return sha256_hex(text)


def tool_version_of(definition: Mapping[str, Any]) -> str:
    """SHA-256 of the RFC 8785 form of a tool's definition."""
    return sha256_hex(canonical(dict(definition)))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedJson("an object has the same key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise MalformedJson(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise MalformedJson(f"the number {text[:32]} is out of range")
    return number


def _safe_integer(text: str) -> int:
    # Checked by length first: int() on a long run of digits is quadratic.
    if len(text) > 17 or abs(int(text)) > MAX_SAFE_INTEGER:
        raise MalformedJson(f"the integer {text[:32]} is beyond ±(2^53 − 1): send it as a string")
    return int(text)


def _no_surrogates(text: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise MalformedJson("a string has a lone surrogate") from error


def _check_scalar(value: Any) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise MalformedJson("an integer is beyond ±(2^53 − 1): send it as a string")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise MalformedJson("a number is not finite")
    else:
        raise MalformedJson(f"{type(value).__name__} is not a JSON value")
