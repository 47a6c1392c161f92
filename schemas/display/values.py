"""JSON as lines that a person can read: every value whole, every text with nothing hidden in it.

"amount": 98.7,                          a value as in JSON, its texts as `schemas.display.escape` shows them
"body": text of 2 lines                  a text with line breaks, line by line
| Dear all,
| regards
"token": [redacted sha256:… sec_…]       a sensitive value: only its commitment and handle
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from schemas.canonical import canonical
from schemas.display.escape import Badges, escaped, escaped_lines
from schemas.sensitive import is_placeholder

# A value that fits into the first width is shown on one line; lists of such values fill lines up to the second.
INLINE_MAX_CHARS = 72
WIDE_CHARS = 100
NO_CHARS = -math.inf
DOES_NOT_FIT = (None, math.inf)
# A constant, because a union written inline would be created for each value.
_CONTAINERS = (dict, list)


def lines_of(value: Any, badges: Badges, *, indent: str = "", head: str = "") -> list[str]:
    """A JSON value as lines.

    Args:
        value: parsed canonical JSON.
        badges: the badges of its texts are added to it.
        indent: the prefix of every line.
        head: the text before the value, on its first line.
    """
    lines: list[str] = []
    _Writer(badges, lines).write(value, indent, head)
    return lines


def scalar_text(value: Any, badges: Badges) -> str:
    """A JSON value that is neither an object nor a list, as in JSON."""
    if isinstance(value, str):
        shown = escaped(value, badges)
        return f'"{shown}"' if '"' not in shown else '"{}"'.format(shown.replace('"', '\\"'))
    return canonical(value)


def redacted(value: Mapping[str, Any]) -> str:
    """The text shown in place of a sensitive value."""
    return f"[redacted sha256:{value['commitment']} {value['handle']}]"


def whole_on_one_line(value: Any, badges: Badges) -> str:
    """A JSON value on one line, however long."""
    if isinstance(value, Mapping):
        if is_placeholder(value):
            return redacted(value)
        items = (f"{scalar_text(k, badges)}: {whole_on_one_line(v, badges)}" for k, v in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(whole_on_one_line(item, badges) for item in value)}]"
    return scalar_text(value, badges)


class _Writer:
    def __init__(self, badges: Badges, lines: list[str]) -> None:
        self._badges = badges
        self._lines = lines
        self._containers: dict[int, tuple[str | None, float]] = {}
        self._scalars: dict[tuple[type, Any], tuple[str | None, float]] = {}

    def write(self, value: Any, indent: str, head: str) -> None:
        if isinstance(value, str):
            self._text(value, indent, head)
        elif isinstance(value, _CONTAINERS):
            self._container(value, indent, head)
        else:
            self._lines.append(indent + head + canonical(value))

    def _text(self, value: str, indent: str, head: str) -> None:
        if "\n" not in value:
            self._lines.append(indent + head + scalar_text(value, self._badges))
            return
        shown = escaped_lines(value, self._badges)
        self._lines.append(f"{indent}{head}text of {value.count(chr(10)) + 1} lines")
        self._lines += [f"{indent}  | {line}".rstrip(" ") for line in shown]

    def _container(self, value: Any, indent: str, head: str) -> None:
        short = self._short(value)
        if short is not None:
            self._lines.append(indent + head + short)
            return
        inner = indent + "  "
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        self._lines.append(indent + head + opening)
        if isinstance(value, dict):
            for key, item in value.items():
                self.write(item, inner, f"{scalar_text(key, self._badges)}: ")
        else:
            self._list(value, inner)
        self._lines.append(indent + closing)

    def _list(self, items: list[Any], indent: str) -> None:
        """Write short items side by side, and each longer item on lines of its own."""
        row: list[str] = []
        width = 0
        for item in items:
            short = self._short(item)
            if row and (short is None or width + len(short) > WIDE_CHARS):
                self._lines.append(indent + ", ".join(row))
                row, width = [], 0
            if short is None:
                self.write(item, indent, "")
            else:
                row.append(short)
                width += len(short) + 2
        if row:
            self._lines.append(indent + ", ".join(row))

    def _short(self, value: Any) -> str | None:
        """The value on one line, if it fits and has no line breaks."""
        return self._fitting(value)[0]

    def _fitting(self, value: Any) -> tuple[str | None, float]:
        """The value on one line, or None if it does not fit, and the characters that it needs."""
        if isinstance(value, _CONTAINERS):
            # Cached by identity: every container around it needs the result again.
            found = self._containers.get(id(value))
            if found is None:
                found = self._containers[id(value)] = self._fitting_container(value)
            return found
        # Cached, because an attacker could repeat one value 100,000 times to keep a decider busy. The type is part of
        # the key, because 1, 1.0 and true are equal.
        scalar = type(value), value
        found = self._scalars.get(scalar)
        if found is None:
            found = self._scalars[scalar] = self._fitting_scalar(value)
        return found

    def _fitting_scalar(self, value: Any) -> tuple[str | None, float]:
        if not isinstance(value, str):
            shown = canonical(value)
            return _if_it_fits(shown, len(shown))
        if len(value) > INLINE_MAX_CHARS or "\n" in value:
            return DOES_NOT_FIT
        shown = scalar_text(value, self._badges)
        return _if_it_fits(shown, max(len(value), len(shown)))

    def _fitting_container(self, value: Any) -> tuple[str | None, float]:
        if isinstance(value, dict) and is_placeholder(value):
            return redacted(value), NO_CHARS
        is_object = isinstance(value, dict)
        parts: list[str] = []
        # An empty container needs no characters, and neither does one that contains only empty ones.
        taken, needed = 2, NO_CHARS
        for item in value:
            key = f"{scalar_text(item, self._badges)}: " if is_object else ""
            shown, chars = self._fitting(value[item] if is_object else item)
            needed = max(needed, taken + len(key) + chars)
            if shown is None or needed > INLINE_MAX_CHARS:
                return DOES_NOT_FIT
            parts.append(key + shown)
            taken += len(parts[-1]) + 2
        inside = ", ".join(parts)
        return f"{{{inside}}}" if is_object else f"[{inside}]", needed


def _if_it_fits(shown: str, chars: int) -> tuple[str | None, float]:
    return (shown, chars) if chars <= INLINE_MAX_CHARS else DOES_NOT_FIT
