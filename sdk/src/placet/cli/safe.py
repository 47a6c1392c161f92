r"""What an agent sent, made safe to display: nothing hidden, nothing that controls the terminal.

Bidirectional controls, zero-width and tag characters, fillers that look like nothing, line breaks where one
line is expected, and control characters (ANSI escapes among them) are shown as `\u{…}`; long runs of
spaces, behind which something may hide, as their number. A hold is shown as the server renders it (`viewing`);
this is for everything else that is printed, and for whatever a server might let through.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
# Format characters that are printed: Unicode's property Prepended_Concatenation_Mark.
_PRINTED = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
# Letters and marks that print as nothing: Hangul fillers, the braille blank, variation selectors.
_BLANKS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
# Stacked marks reach into other lines.
_STACK_MAX = 4
_RUN_OF_SPACES = re.compile(r"[^\S\n]{33,}")


def is_hidden(char: str) -> bool:
    """Returns True if a character is invisible or controls the output."""
    if char in _BLANKS or _selects(char):
        return True
    if char == " ":
        return False
    category = unicodedata.category(char)
    return category in _HIDDEN_CATEGORIES or category == "Zs" or _covers(char)


def is_blank(value: str) -> bool:
    """Returns True if nothing of a text is seen: the gateway refuses it as an answer."""
    return not any(map(_is_seen, value))


def _is_seen(char: str) -> bool:
    if char in _BLANKS or _selects(char):
        return False
    return char in _PRINTED or unicodedata.category(char) not in _UNSEEN


def _selects(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _covers(char: str) -> bool:
    """Returns True if a mark strikes through or encloses the character before it."""
    return unicodedata.category(char) == "Me" or unicodedata.combining(char) == 1


def _stacked(value: str) -> frozenset[int]:
    """The positions of marks that follow many marks, or begin the text."""
    if value.isascii():
        return frozenset()
    found, height = set(), _STACK_MAX
    for place, char in enumerate(value):
        is_mark = unicodedata.category(char) == "Mn"
        if is_mark and height >= _STACK_MAX:
            found.add(place)
        height = height + 1 if is_mark else 0
    return frozenset(found)


def escaped(value: str, *, lines: bool = False) -> str:
    """Text with every hidden character made visible.

    Args:
        value: the received text.
        lines: keep line breaks.
    """
    stacked = _stacked(value)
    shown = "".join(
        char
        if (lines and char == "\n") or not (is_hidden(char) or place in stacked)
        else f"\\u{{{ord(char):x}}}"
        for place, char in enumerate(value)
    )
    return _RUN_OF_SPACES.sub(lambda run: f"⟨{len(run[0])} spaces⟩", shown)


def pretty_json(value: Any) -> str:
    """A JSON value over several lines, safe to show, complete."""
    return escaped(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True), lines=True)


def text(value: object, *, lines: bool = False, style: str = "") -> Text:
    """Any value as text for rich, without markup."""
    from rich.text import Text

    return Text(escaped(str(value), lines=lines), style=style)
