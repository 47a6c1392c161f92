"""The tokens of a CEL expression: the binding compiles but exposes no tree, and the limits need the shape.

Only the plain part of the language is read: no byte strings, triple quotes, escaped identifiers or messages.
Everything else is refused, so that no expression passes whose work cannot be computed.
"""

import re
import sys
from typing import NamedTuple

MACROS = frozenset({"all", "exists", "exists_one", "existsOne", "map", "filter"})
MAX_NESTING = 32
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|//[^\n]*)
    |(?P<string>[rR]"[^"\n]*"|[rR]'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:[0-9]+\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<op>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE,
)
_CLOSES = {")": "(", "]": "[", "}": "{"}
_JUXTAPOSED = frozenset({"string", "number", "name"})
# Prefixes of strings in other languages, and of CEL's byte strings.
_PREFIXES = frozenset({"b", "br", "f", "r", "rb", "u"})


class Unreadable(ValueError):
    """The expression uses more than the plain language of policies."""


class Token(NamedTuple):
    """One token. `depth` counts the comprehensions around it; `mate` is the index of the closing bracket."""

    kind: str
    text: str
    depth: int
    mate: int


def tokenize(source: str) -> tuple[Token, ...]:
    """The expression's tokens, without white space and comments.

    Raises:
        Unreadable: with a sentence that says what to write instead.
    """
    raw = _scan(source)
    mates = _brackets(raw)
    tokens: list[Token] = []
    ends: list[int] = []
    for index, (kind, text) in enumerate(raw):
        if ends and ends[-1] == index:
            ends.pop()
        tokens.append(Token(kind, text, len(ends), mates.get(index, -1)))
        if text == "(" and index and raw[index - 1][1] in MACROS:
            ends.append(mates[index])
    return tuple(tokens)


def _scan(source: str) -> list[tuple[str, str]]:
    raw: list[tuple[str, str]] = []
    position = 0
    while position < len(source):
        found = _TOKEN.match(source, position)
        if found is None:
            hint = "; write '==' to compare" if source[position] == "=" else ""
            raise Unreadable(f"{source[position : position + 10]!r} cannot be read here{hint}")
        kind = found.lastgroup or "space"
        # `b"x"` and `'''x'''` would be two tokens side by side; nothing in the plain language is.
        if kind == "string" and raw and raw[-1][0] in _JUXTAPOSED and raw[-1][1] != "in":
            raise Unreadable(_juxtaposed(*raw[-1]))
        if kind != "space":
            raw.append((kind, found.group()))
        position = found.end()
    return raw


def _juxtaposed(kind: str, text: str) -> str:
    if kind == "name" and text.lower() not in _PREFIXES:
        return f"{text!r} cannot be used right before a text; compare with '==', '!=' or 'in'"
    return "byte strings and triple quotes are not supported; write a plain string"


def _brackets(raw: list[tuple[str, str]]) -> dict[int, int]:
    mates: dict[int, int] = {}
    open_at: list[int] = []
    for index, (kind, text) in enumerate(raw):
        if kind != "op":
            continue
        if text in "([{":
            open_at.append(index)
            if len(open_at) > MAX_NESTING:
                raise Unreadable(f"brackets are nested deeper than {MAX_NESTING}; use fewer levels")
        elif text in _CLOSES:
            if not open_at or raw[open_at[-1]][1] != _CLOSES[text]:
                raise Unreadable(f"{text!r} closes nothing")
            mates[open_at.pop()] = index
    if open_at:
        raise Unreadable(f"{raw[open_at[-1]][1]!r} is never closed")
    return mates


def call_arguments(tokens: tuple[Token, ...], opening: int) -> list[tuple[Token, ...]]:
    """The arguments of the call whose `(` is at `opening`, each as its tokens."""
    arguments: list[tuple[Token, ...]] = []
    start = index = opening + 1
    end = tokens[opening].mate
    while index < end:
        if tokens[index].mate >= 0:
            index = tokens[index].mate
        elif tokens[index].text == ",":
            arguments.append(tokens[start:index])
            start = index + 1
        index += 1
    return [*arguments, tokens[start:end]] if end > start else arguments


def only_text(tokens: tuple[Token, ...], opening: int) -> str | None:
    """The quoted text that is a call's only argument; None if it has others, or none."""
    arguments = call_arguments(tokens, opening)
    if [[token.kind for token in part] for part in arguments] != [["string"]]:
        return None
    return string_value(arguments[0][0].text)


def bound_names(tokens: tuple[Token, ...]) -> set[str]:
    """The names that comprehensions bind to the values they iterate over."""
    names: set[str] = set()
    for index in range(1, len(tokens) - 1):
        if tokens[index].text in MACROS and tokens[index + 1].text == "(" and tokens[index - 1].text == ".":
            first = call_arguments(tokens, index + 1)[:1]
            names.update(argument[0].text for argument in first if len(argument) == 1)
    return names


_ESCAPE = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL
)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def string_value(text: str) -> str:
    """The value of a string token, without its quotes and escapes."""
    if text[0] in "rR":
        return text[2:-1]
    return _ESCAPE.sub(_unescaped, text[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    code = found.group(1) or found.group(2) or found.group(3)
    if code or found.group(4):
        number = int(code, 16) if code else int(found.group(4), 8)
        return chr(number) if number <= sys.maxunicode else "\ufffd"
    return _LETTERS.get(found.group(5), found.group(5))
