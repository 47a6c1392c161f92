r"""Text of a log line that controls nothing: characters that are not printable are shown as `\u{…}`.

What is written down was often received: an escape sequence can clear a terminal, and a carriage return, U+0085 or
U+2028 begins a line for a terminal or a collector. The client distribution has the same form (`placet.log_lines`).
"""

from __future__ import annotations

import json
import re

# These two begin no line that looks like a record: further lines are indented.
_KEPT = "\n\t"
_WITHOUT_KEPT = str.maketrans("", "", _KEPT)
_SURROGATE = re.compile("[\ud800-\udfff]")


def shown(text: str) -> str:
    """The text with its line breaks and tabs, and all other control characters shown."""
    if text.translate(_WITHOUT_KEPT).isprintable():
        return text
    return "".join(char if char.isprintable() or char in _KEPT else _code_of(char) for char in text)


def shown_surrogates(text: str) -> str:
    """The text with its lone surrogates shown, which no UTF-8 can have: such come from names of files."""
    return _SURROGATE.sub(lambda found: _code_of(found[0]), text)


def shown_in_json(document: str) -> str:
    r"""A JSON document of one line with its control characters as `\u…`; it has the same values."""
    if document.isprintable():
        return document
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in document)


def _code_of(char: str) -> str:
    return f"\\u{{{ord(char):x}}}"
