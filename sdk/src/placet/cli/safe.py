r"""What an agent sent, made fit to be looked at: nothing hidden, nothing that steers the terminal.

Bidirectional controls, zero-width and tag characters, fillers that look like nothing, line breaks where one
line is expected, and control characters (ANSI escapes among them) are shown as `\u{…}`; long runs of
spaces, behind which something may hide, as their number.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from rich.text import Text

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks that print as nothing: Hangul fillers, the braille blank, variation selectors.
_BLANKS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
_RUN_OF_SPACES = re.compile(r"[^\S\n]{33,}")
_WORD = re.compile(r"\w+")
_LOOKALIKE_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")


def is_hidden(char: str) -> bool:
    """Whether a character prints as nothing, or steers what is printed."""
    if char in _BLANKS or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
        return True
    if char == " ":
        return False
    return unicodedata.category(char) in _HIDDEN_CATEGORIES or unicodedata.category(char) == "Zs"


def escaped(value: str, *, lines: bool = False) -> str:
    """Text with every hidden character made visible.

    Args:
        value: what came.
        lines: keep line breaks.
    """
    shown = "".join(
        char if (lines and char == "\n") or not is_hidden(char) else f"\\u{{{ord(char):x}}}" for char in value
    )
    return _RUN_OF_SPACES.sub(lambda run: f"⟨{len(run[0])} spaces⟩", shown)


def pretty_json(value: Any) -> str:
    """A JSON value over several lines, safe to show, complete."""
    return escaped(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True), lines=True)


def warnings(value: Any) -> list[str]:
    """What a reader should know before trusting their eyes: badges for a JSON value or text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    found = []
    if any(is_hidden(char) for char in text):
        found.append("hidden characters")
    if _RUN_OF_SPACES.search(text):
        found.append("long runs of spaces")
    if any(_mixes_scripts(word) for word in _WORD.findall(text)):
        found.append("look-alike letters")
    return found


def _mixes_scripts(word: str) -> bool:
    scripts = {name for char in word if char.isalpha() for name in [_script(char)] if name}
    return len(scripts) > 1


def _script(char: str) -> str:
    name = unicodedata.name(char, "")
    return next((script for script in _LOOKALIKE_SCRIPTS if name.startswith(script)), "")


def text(value: object, *, lines: bool = False, style: str = "") -> Text:
    """Anything as text for rich, without markup."""
    return Text(escaped(str(value), lines=lines), style=style)
