"""Glob patterns over names, and how specific a pattern is."""

import re
from collections.abc import Callable
from functools import lru_cache

from schemas.linear_patterns import glob_matcher

_PART = re.compile(r"\*+|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_WILDCARD = re.compile(r"[*?\[]")


def matcher(pattern: str) -> Callable[[str], bool]:
    """A test for the pattern: `*`, `?` and `[...]`, the whole name, case counting."""
    return glob_matcher(pattern)


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
