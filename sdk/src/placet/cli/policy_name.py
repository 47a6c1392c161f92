"""The names in a policy's document, found without a YAML parser, which the client does not depend on.

Only the first level of the document is read, written as a block (`policy: NAME`) or in braces, as in JSON. What
else the document says is the server's to read, which also refuses it under another name than its own.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

_KEYS = frozenset({"policy", '"policy"', "'policy'"})
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'"
# Blank lines, comments and directives before the content, which can follow `---` on the same line.
_BEGINNING = re.compile(r"\ufeff?(?:[ \t]*(?:[#%][^\n]*)?\r?\n|---[ \t]*(?:#[^\n]*)?\r?\n|---[ \t]+)*")
_FIRST_VALUE = re.compile(
    rf"\s*(?:#[^\n]*\n\s*)*(?:[>|]-\s*\n\s*)?(?P<value>{_QUOTED}|[^\s#][^\n]*?)\s*(?:\s#[^\n]*\s*)*"
)
_PART = re.compile(
    rf"\s+|#[^\n]*|(?P<text>{_QUOTED})|(?P<mark>[{{}}\[\],:])|(?P<word>(?:[^\s{{}}\[\],:]|:(?![\s{{}}\[\],]))+)",
    re.DOTALL,
)


def names_in(document: str) -> list[str]:
    """The value of each `policy` on the document's first level, without its quotes."""
    begun = _BEGINNING.match(document)
    start = begun.end() if begun else 0
    rest = document[start:]
    return _in_braces(rest) if rest.lstrip().startswith("{") else _in_block(rest)


def _in_block(text: str) -> list[str]:
    indent = " " * (len(text) - len(text.lstrip(" ")))
    # A value continues on lines that are indented further.
    line = rf"^{indent}(?:policy|\"policy\"|'policy')[ \t]*:(?=\s|\Z)(.*(?:\n(?:{indent}[ \t]+.*|[ \t]*(?:#.*)?$))*)"
    return [_value(found) for found in re.findall(line, text, re.MULTILINE)]


def _value(text: str) -> str:
    found = _FIRST_VALUE.fullmatch(text)
    return _plain(found["value"]) if found else ""


def _in_braces(text: str) -> list[str]:
    """The values of `policy` in `{policy: NAME, …}`."""
    names: list[str] = []
    depth = 0
    parts = [found.group() for found in _PART.finditer(text) if found.lastgroup]
    for index, part in enumerate(parts):
        is_key = part in _KEYS and parts[index - 1] in ("{", ",") and parts[index + 1 : index + 2] == [":"]
        if depth == 1 and is_key:
            value = parts[index + 2 : index + 4]
            names.append(_plain(value[0]) if value[1:] in ([","], ["}"]) else "")
        depth += (part in ("{", "[")) - (part in ("}", "]"))
    return names


def _plain(value: str) -> str:
    """A text without its quotes."""
    if value.startswith('"'):
        with suppress(ValueError):
            return str(json.loads(value))
    return value[1:-1].replace("''", "'") if value[:1] in ("'", '"') else value
