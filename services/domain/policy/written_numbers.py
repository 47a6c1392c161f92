"""Numbers that are written as texts, in the one way that each program reads alike."""

import re

# `5.000` can be five thousand, and `077` sixty-three.
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.(?:[0-9]{1,2}|[0-9]{4,15}))?")
_ANY = re.compile(
    r"[-+]?(?:[0-9][0-9_', ]{0,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:e[-+]?[0-9]{1,3})?", re.IGNORECASE
)


def written_number(text: str) -> float | None:
    """The number that a text is to each program; None for any other text."""
    return float(text) if _PLAIN.fullmatch(text.strip()) else None


def is_like_number(text: str) -> bool:
    """True if some program may read a text as a number."""
    return _ANY.fullmatch(text.strip()) is not None
