"""What arguments must be before anything is done with them."""

from schemas.canonical import MalformedJson, canonical, parse_strict
from schemas.limits import ARGUMENTS_MAX_BYTES
from schemas.refusals import Refusal


def arguments_problem(text: str) -> tuple[Refusal, str] | None:
    """Why the text cannot be a call's arguments, or None: it must be a canonical JSON object of bounded size."""
    if text == "{}":
        return None
    if len(text.encode()) > ARGUMENTS_MAX_BYTES:
        return Refusal.TOO_LARGE, f"arguments are limited to {ARGUMENTS_MAX_BYTES} bytes"
    try:
        value = parse_strict(text)
        if not isinstance(value, dict):
            return Refusal.MALFORMED, "arguments must be a JSON object"
        if canonical(value) != text:
            return Refusal.MALFORMED, "arguments are not in RFC 8785 form"
    except MalformedJson as error:
        return Refusal.MALFORMED, str(error)
    return None
