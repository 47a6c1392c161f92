"""Glob patterns over names, and how specific a pattern is."""

import re
from collections.abc import Callable
from functools import lru_cache
from unicodedata import normalize

from schemas.linear_patterns import PatternRefused, glob_matcher

_PART = re.compile(r"\*+|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_WILDCARD = re.compile(r"[*?\[]")
# Where a name's words meet: at what is no letter and no digit, and before a capital (`sendMoney`, `HTTPRequest`).
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_BEFORE_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# What tool servers put behind their own name: `mcp__bank__pay`, `bank.pay`, `bank/pay`, `bank:pay`.
_BEHIND_SERVER = re.compile(r"__|[./:]")
# A name of many parts costs no more: beside the whole, only this many endings are looked at.
_ENDINGS_MAX = 3


def matcher(pattern: str) -> Callable[[str], bool]:
    """A test for the pattern: `*`, `?` and `[...]`, the whole name, case counting."""
    return glob_matcher(pattern)


def like_matcher(pattern: str) -> Callable[[str], bool]:
    """A test for the pattern over a name however it is spelt: any of its `spellings` fits.

    Raises:
        PatternRefused: as `matcher`; or no spelling could ever fit.
    """
    literal = re.sub(r"\[[^\]]*\]|[*?]", "", pattern)
    if re.search(r"[^\w]|__", literal) or literal != _folded(literal):
        raise PatternRefused("tools_like is written in lower-case words with single '_' between them")
    test = matcher(pattern)
    return lambda name: any(map(test, spellings(name)))


@lru_cache(maxsize=4096)
def spellings(name: str) -> tuple[str, ...]:
    """A tool's name as lower-case words with `_` between them, and likewise without a server's name before it.

    `SQLQuery` is `sql_query`; since `SQLquery` could be split in the wrong place, each is there without the splits at
    capitals too.
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
    """Whether the pattern is one; a rule with another is refused where its error is told."""
    try:
        compiled(pattern)
    except PatternRefused:
        return False
    return True


def is_exact(pattern: str) -> bool:
    """Whether the pattern is a plain name."""
    return _WILDCARD.search(pattern) is None


@lru_cache(maxsize=4096)
def overlap(one: str, other: str) -> bool:
    """Whether a name can fit both patterns; where two classes meet, it is taken that one can."""
    if "*" in (one, other) or one == other:
        return True
    for exact, pattern in ((one, other), (other, one)):
        if is_exact(exact):
            return matcher(pattern)(exact)
    return _overlapping(_parts(one), _parts(other))


def _parts(pattern: str) -> tuple[str, ...]:
    return tuple("*" if part[0] == "*" else part for part in _PART.findall(pattern))


def _overlapping(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """By the places in `other` that a name can have come to, after each part of `one`."""
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
    """How specific a pattern is: a name before a pattern before `*`, then the longer literal beginning.

    Returns:
        (2 exact | 1 pattern | 0 any, length of the literal beginning, count of literal characters).
    """
    if pattern == "*":
        return (0, 0, 0)
    wildcard = _WILDCARD.search(pattern)
    if wildcard is None:
        return (2, len(pattern), len(pattern))
    literals = sum(char not in "*?[]" for char in pattern)
    return (1, wildcard.start(), literals)
