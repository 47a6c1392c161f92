"""Glob patterns over names, and how specific a pattern is."""

import re
from collections.abc import Callable
from functools import lru_cache
from unicodedata import normalize

from schemas.linear_patterns import PatternRefused, glob_matcher

_PART = re.compile(r"\*+|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_WILDCARD = re.compile(r"[*?\[]")
# The boundaries between a name's words: characters other than letters and digits, and capitals (`sendMoney`,
# `HTTPRequest`).
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_BEFORE_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# The separators between a tool server's name and its tool's: `mcp__bank__pay`, `bank.pay`, `bank/pay`, `bank:pay`.
_BEHIND_SERVER = re.compile(r"__|[./:]")
# Limits the work on a name of many parts: in addition to the whole, only this many endings are used.
_ENDINGS_MAX = 3


def matcher(pattern: str) -> Callable[[str], bool]:
    """A test for the pattern: `*`, `?` and `[...]`, on the whole name, case-sensitive."""
    return glob_matcher(pattern)


def like_matcher(pattern: str) -> Callable[[str], bool]:
    """A test for the pattern on a name in any of its `spellings`.

    Raises:
        PatternRefused: as for `matcher`; or no spelling could ever match.
    """
    literal = re.sub(r"\[[^\]]*\]|[*?]", "", pattern)
    if re.search(r"[^\w]|__", literal) or literal != _folded(literal):
        raise PatternRefused("tools_like is written in lower-case words with single '_' between them")
    test = matcher(pattern)
    return lambda name: any(map(test, spellings(name)))


@lru_cache(maxsize=4096)
def spellings(name: str) -> tuple[str, ...]:
    """A tool's name as lower-case words with `_` between them, with and without a server's name before it.

    `SQLQuery` becomes `sql_query`; since `SQLquery` could be split in the wrong place, each spelling is also included
    without the splits at capitals.
    """
    plain = normalize("NFKC", name)
    ends = [found.end() for found in _BEHIND_SERVER.finditer(plain)][-_ENDINGS_MAX:]
    forms: dict[str, None] = {}
    for part in (plain, *(plain[end:] for end in ends)):
        for spelt in (_BEFORE_CAPITAL.sub("_", part), part):
            forms[_folded(_BETWEEN_WORDS.sub("_", spelt).strip("_"))] = None
    return tuple(forms)


def _folded(text: str) -> str:
    return normalize("NFKC", text).casefold()


def is_usable(pattern: str, compiled: Callable[[str], Callable[[str], bool]]) -> bool:
    """True if the pattern is valid; a rule with an invalid pattern is refused at the place that reports the error."""
    try:
        compiled(pattern)
    except PatternRefused:
        return False
    return True


def is_exact(pattern: str) -> bool:
    """True if the pattern is a plain name."""
    return _WILDCARD.search(pattern) is None


@lru_cache(maxsize=4096)
def overlap(one: str, other: str) -> bool:
    """True if a name can match both patterns; two character classes are assumed to have a character in common."""
    if "*" in (one, other) or one == other:
        return True
    for exact, pattern in ((one, other), (other, one)):
        if is_exact(exact):
            return matcher(pattern)(exact)
    return _overlapping(_parts(one), _parts(other))


def _parts(pattern: str) -> tuple[str, ...]:
    return tuple("*" if part[0] == "*" else part for part in _PART.findall(pattern))


def _overlapping(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Computed from the positions in `other` that a name can have reached after each part of `one`."""
    places = _past_stars({0}, other)
    for part in one:
        if part == "*":
            places = set(range(min(places), len(other) + 1)) if places else places
            continue
        stepped = {
            place if other[place] == "*" else place + 1
            for place in places
            if place < len(other) and (other[place] == "*" or _meet(part, other[place]))
        }
        places = _past_stars(stepped, other)
    return len(other) in places


def _past_stars(places: set[int], parts: tuple[str, ...]) -> set[int]:
    found = set(places)
    for place in places:
        while place < len(parts) and parts[place] == "*":
            place += 1
            found.add(place)
    return found


def _meet(one: str, other: str) -> bool:
    for literal, part in ((one, other), (other, one)):
        if len(literal) == 1 and literal != "?":
            return matcher(part)(literal)
    return True


def specificity(pattern: str) -> tuple[int, int, int]:
    """The specificity of a pattern: a name before a pattern before `*`, then the longer literal prefix.

    Returns:
        (2 exact | 1 pattern | 0 any, length of the literal prefix, count of literal characters).
    """
    if pattern == "*":
        return (0, 0, 0)
    wildcard = _WILDCARD.search(pattern)
    if wildcard is None:
        return (2, len(pattern), len(pattern))
    literals = sum(char not in "*?[]" for char in pattern)
    return (1, wildcard.start(), literals)
