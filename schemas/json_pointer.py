"""The value at a JSON Pointer (RFC 6901)."""

import re
from typing import Any, Final

ABSENT: Final = object()
_INDEX = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_ESCAPED = re.compile(r"~[^01]|~$")


def is_pointer(text: str) -> bool:
    """Returns True if a text has the form of a JSON Pointer."""
    return (not text or text.startswith("/")) and _ESCAPED.search(text) is None


def value_at(value: Any, pointer: str) -> Any:
    """The part of a JSON value that a pointer names; `ABSENT` if there is none.

    Args:
        value: a parsed JSON value.
        pointer: see `is_pointer`; "" names the whole value.
    """
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return ABSENT
    return value
