"""Checks of arguments that precede all other processing."""

from functools import lru_cache
from typing import Any

from schemas.canonical import MalformedJson, TooDeep, canonical, parse_new, parse_strict
from schemas.limits import ARGUMENTS_MAX_BYTES
from schemas.refusals import Refusal
from services.domain.context import Context

# A longer text can take thirty times its size once it is parsed: of these few are kept.
SHORT_MAX_CHARS = 16_384
_parsed_short = lru_cache(maxsize=64)(parse_strict)
_parsed_long = lru_cache(maxsize=8)(parse_strict)


def parsed(text: str) -> Any:
    """The value of canonical JSON text, cached, because one decision reads the same arguments several times.

    The value is shared, so it must not be changed.

    Raises:
        MalformedJson: see `parse_strict`.
    """
    return _parsed_short(text) if len(text) <= SHORT_MAX_CHARS else _parsed_long(text)


def object_problem(field: str, text: str) -> tuple[Refusal, str] | None:
    """The reason why a field's text is invalid, or None: it must be a canonical JSON object of limited size."""
    if text == "{}":
        return None
    if len(text.encode()) > ARGUMENTS_MAX_BYTES:
        return Refusal.TOO_LARGE, f"{field}: limited to {ARGUMENTS_MAX_BYTES} bytes"
    try:
        value = parsed(text)
        if not isinstance(value, dict):
            return Refusal.MALFORMED, f"{field}: must be a JSON object"
        if canonical(value) != text:
            return Refusal.MALFORMED, f"{field}: not in RFC 8785 form"
        if "e+" in text:
            parse_new(text)
    except TooDeep as error:
        return Refusal.TOO_LARGE, f"{field}: {error}"
    except MalformedJson as error:
        return Refusal.MALFORMED, f"{field}: {error}"
    return None


def arguments_misfit(tool_name: str, arguments: str, ctx: Context) -> str | None:
    """The path and reason of a misfit between arguments and inputSchema, or None; an unknown tool has no schema."""
    tool = ctx.tool(tool_name)
    return None if tool is None else tool.validate(parsed(arguments))


def json_problem(text: str) -> str | None:
    """The reason why the text is not JSON that every reader can read, or None."""
    try:
        parse_new(text)
    except MalformedJson as error:
        return str(error)
    return None
