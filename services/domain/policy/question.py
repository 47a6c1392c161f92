"""The question of a hold: a template filled with plain text, never evaluated.

Values from the agent are limited in length, and characters that could reorder, hide or imitate text are escaped.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from schemas.display.escape import revealed
from schemas.plain_words import did_you_mean
from services.domain.policy.cel_shape import FIELDS
from services.domain.policy.visible import no_field

MAX_VALUE_CHARS = 200
MAX_QUESTION_CHARS = 1_000
_ROOTS = frozenset({"args", "tool", "agent", "user", "workspace", "execution"})
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+(?:\.[\w-]+)*)\s*\}\}", re.ASCII)


class BadTemplate(ValueError):
    """The question cannot be published; the message gives the reason."""


@lru_cache(maxsize=4096)
def parse_template(template: str) -> tuple[str | tuple[str, ...], ...]:
    """A template as texts and paths (tuples of names).

    Raises:
        BadTemplate: an unknown variable or field, or braces that are not a placeholder.
    """
    parts: list[str | tuple[str, ...]] = []
    position = 0
    for found in _PLACEHOLDER.finditer(template):
        parts.append(template[position : found.start()])
        parts.append(_checked(tuple(found.group(1).split("."))))
        position = found.end()
    parts.append(template[position:])
    if any("{{" in part or "}}" in part for part in parts if isinstance(part, str)):
        raise BadTemplate("a placeholder is written {{args.name}}")
    return tuple(part for part in parts if part)


def _checked(path: tuple[str, ...]) -> tuple[str, ...]:
    if path[0] not in _ROOTS:
        raise BadTemplate(f"unknown name {path[0]!r}{did_you_mean(path[0], _ROOTS)}")
    known = FIELDS.get(path[0])
    if known is not None and (len(path) < 2 or path[1] not in known):
        field = path[1] if len(path) > 1 else ""
        raise BadTemplate(no_field(path[0], field, known))
    return path


def render(template: str, variables: Mapping[str, Any]) -> str:
    """Fill the template; a value that is absent is shown as "(missing)".

    Returns:
        At most 1,000 characters, each value at most 200, without hidden characters.
    """
    parts = parse_template(template)
    texts = [revealed(part) if isinstance(part, str) else _shown(part, variables) for part in parts]
    return _cut("".join(texts), MAX_QUESTION_CHARS)


def _shown(path: tuple[str, ...], variables: Mapping[str, Any]) -> str:
    value: Any = variables
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return "(missing)"
        value = value[name]
    # Also cut before escaping, so that a huge value costs no more than a long one.
    text = value[: MAX_VALUE_CHARS + 1] if isinstance(value, str) else _json(value)
    return _cut(revealed(text), MAX_VALUE_CHARS)


def _json(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    pieces: list[str] = []
    length = 0
    for piece in json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).iterencode(value):
        pieces.append(piece[: MAX_VALUE_CHARS + 1])
        length += len(piece)
        if length > MAX_VALUE_CHARS:
            break
    return "".join(pieces)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
