"""The only parser of JSON from outside, for REST and the WebSocket."""

from __future__ import annotations

from typing import Any

from gateway.problems import Problem
from schemas.canonical import MalformedJson, TooDeep, canonical, parse_new
from schemas.limits import ARGUMENTS_MAX_BYTES
from schemas.refusals import Refusal

# A body consists of its arguments and a few fields; JSON escapes can double the arguments' length.
BODY_MAX_BYTES = 1024 * 1024


def parse(raw: bytes) -> Any:
    """Parse JSON that has exactly one meaning.

    Raises:
        Problem: 400 malformed, or 413 too_large for a body over 1 MiB or nested deeper than 64 levels.
    """
    if len(raw) > BODY_MAX_BYTES:
        raise Problem(Refusal.TOO_LARGE, f"the body is over {BODY_MAX_BYTES} bytes")
    try:
        return parse_new(raw)
    except TooDeep as error:
        raise Problem(Refusal.TOO_LARGE, f"the body is {error}") from error
    except MalformedJson as error:
        raise Problem(Refusal.MALFORMED, str(error)) from error


def parse_object(raw: bytes) -> dict[str, Any]:
    """Parse a body that must be a JSON object; an empty one is an empty object.

    Raises:
        Problem: as `parse`.
    """
    value = parse(raw) if raw.strip() else {}
    if not isinstance(value, dict):
        raise Problem(Refusal.MALFORMED, "the body must be a JSON object")
    return value


def canonical_text(value: Any, name: str) -> str:
    """Return the canonical JSON of a parsed value, of at most 256 KiB.

    Raises:
        Problem: 413 too_large; it names the field.
    """
    if value == {}:
        return "{}"
    return within(canonical(value), name, ARGUMENTS_MAX_BYTES, " of canonical JSON")


def within(text: str, name: str, most: int, form: str = "") -> str:
    """Return a text of at most `most` bytes of UTF-8.

    Raises:
        Problem: 413 too_large; it names the field.
    """
    if len(text) > most // 4 and len(text.encode()) > most:
        raise Problem(Refusal.TOO_LARGE, f"{name} is over {most} bytes{form}")
    return text
