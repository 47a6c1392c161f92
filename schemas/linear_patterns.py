"""Foreign patterns, matched by an engine without backtracking in time linear in the text.

Every pattern from outside (a tool's schema, a policy's globs) is compiled and matched only here, by RE2 with a bound
on its memory. JSON Schema's patterns are those of ECMA-262: syntax that RE2 writes differently is translated; syntax
that needs backtracking (look-around, back-references), or that RE2 would read differently, is refused.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import re2

PATTERN_MAX_CHARS = 4_096
_OPTIONS = re2.Options()
_OPTIONS.max_mem = 1 << 18
_OPTIONS.log_errors = False
# Only the fact of a match is needed: capturing groups would multiply the work by their number.
_OPTIONS.never_capture = True
# An escape, or the beginning of a class.
_PART = re.compile(
    r"\\u\{([0-9A-Fa-f]{1,6})\}|\\u([0-9A-Fa-f]{4})|\\c([A-Za-z])|\\(.)|\[(\^?\]|\[:)|\(\?(<?[=!])", re.DOTALL
)
# Escapes that ECMA-262 reads as the letter itself or not at all, but RE2 as something else.
_FOREIGN_ESCAPES = frozenset("AaCEQZzGKRXh")
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
# RE2's error for a pattern that outgrows its memory, and for no other, begins with this.
_TOO_LARGE = "pattern too large"
_WILDCARD = re.compile(r"[*?\[]")
_GLOB_PART = re.compile(r"\*+|\?|\[(!?)(\]?[^\]]*)\]|.", re.DOTALL)


class PatternRefused(ValueError):
    """The pattern cannot be used; the message says why."""


class PatternTooLarge(PatternRefused):
    """The pattern is valid, but too large for the engine's memory."""


@lru_cache(maxsize=4096)
def linear_pattern(pattern: str) -> Any:
    """A pattern of JSON Schema, compiled: an object with `search(text)` and `programsize`.

    Raises:
        PatternRefused: it is invalid, too large, or needs what a linear-time engine cannot do.
    """
    if len(pattern) > PATTERN_MAX_CHARS:
        raise PatternRefused(f"a pattern has at most {PATTERN_MAX_CHARS} characters")
    return _compiled(_translated(pattern))


@lru_cache(maxsize=4096)
def bounded_pattern(pattern: str) -> Any:
    """A pattern written in RE2's own syntax, as in CEL.

    Raises:
        PatternRefused: as `linear_pattern`.
    """
    return _compiled(pattern)


@lru_cache(maxsize=8192)
def bounded_size(pattern: str) -> int:
    """The size of a pattern in RE2's own syntax, in RE2's instructions.

    Raises:
        PatternRefused: as `linear_pattern`.
    """
    # The program is not kept: the policy may be refused, and a large program takes a hundred kilobytes.
    return int(_compiled(pattern).programsize)


@lru_cache(maxsize=4096)
def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """A case-sensitive test for a whole name by `*`, `?` and `[...]` (`[!...]`: none of them).

    Raises:
        PatternRefused: an invalid class, such as `[z-a]`.
    """
    if pattern == "*":
        return lambda _name: True
    if _WILDCARD.search(pattern) is None:
        return pattern.__eq__
    compiled = _glob_program(pattern)
    return lambda name: compiled.search(name) is not None


def glob_size(pattern: str) -> int:
    """The size of a glob pattern, in RE2's instructions; 0 for a plain name and for `*`.

    Raises:
        PatternRefused: as `glob_matcher`.
    """
    if pattern == "*" or _WILDCARD.search(pattern) is None:
        return 0
    return int(_glob_program(pattern).programsize)


@lru_cache(maxsize=4096)
def _glob_program(pattern: str) -> Any:
    return _compiled(f"(?s)^(?:{''.join(_glob_parts(pattern))})$")


def _compiled(text: str) -> Any:
    try:
        return re2.compile(text, _OPTIONS)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else ""
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        if shown.startswith(_TOO_LARGE):
            raise PatternTooLarge("it is too large; shorten its repetitions and classes") from error
        why = f"{shown[:100] or 'it is not a pattern'}; look-around and back-references are not possible"
        raise PatternRefused(why) from error


def _translated(pattern: str) -> str:
    parts: list[str] = []
    position = 0
    high: int | None = None
    for found in _PART.finditer(pattern):
        if high is not None and found.start() != position:
            raise PatternRefused("half of a surrogate pair stands alone")
        parts.append(pattern[position : found.start()])
        position = found.end()
        long, short, control, escaped, odd, around = found.groups()
        if around:
            raise PatternRefused("look-around is not possible in linear time")
        if odd:
            raise PatternRefused(
                f"[{odd} is read differently by different engines; write the class in another way"
            )
        code = int(long or short or "-1", 16)
        if high is not None:
            if code not in _LOW:
                raise PatternRefused("half of a surrogate pair stands alone")
            code, high = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00), None
        elif code in _HIGH:
            high = code
            continue
        if control:
            code = ord(control) % 32
        parts.append(_escape(escaped) if code < 0 else f"\\x{{{code:x}}}")
    if high is not None:
        raise PatternRefused("half of a surrogate pair stands alone")
    return "".join([*parts, pattern[position:]])


def _escape(char: str) -> str:
    if char in _FOREIGN_ESCAPES:
        raise PatternRefused(f"\\{char} is not an escape of JSON Schema's patterns")
    # ECMA-262's \s includes all of Unicode's spaces; RE2's only ASCII's.
    return f"\\{char}"


def _glob_parts(pattern: str) -> list[str]:
    return [_glob_part(found) for found in _GLOB_PART.finditer(pattern)]


def _glob_part(found: re.Match[str]) -> str:
    part = found.group()
    if part[0] == "*":
        return ".*"
    if part == "?":
        return "."
    if found.group(2):
        inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", found.group(2))
        return f"[{'^' if found.group(1) else ''}{inner}]"
    return str(re2.escape(part))
