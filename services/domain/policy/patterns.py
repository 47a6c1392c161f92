"""Glob patterns over names, and how specific a pattern is."""

import re
from collections.abc import Callable

from schemas.linear_patterns import glob_matcher

_WILDCARD = re.compile(r"[*?\[]")


def matcher(pattern: str) -> Callable[[str], bool]:
    """A test for the pattern: `*`, `?` and `[...]`, the whole name, case counting."""
    return glob_matcher(pattern)


def is_exact(pattern: str) -> bool:
    """Whether the pattern is a plain name."""
    return _WILDCARD.search(pattern) is None


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
