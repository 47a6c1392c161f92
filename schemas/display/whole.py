"""Decides if a view must have been seen whole before its hold can be approved or edited.

This is required if something could be overlooked: with many or deep arguments, and with anything that hides text or
pushes it out of sight.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from schemas.canonical import parse_strict
from schemas.display.characters import Badge
from schemas.display.escape import Badges, badge_ends, escaped, is_plain
from schemas.display.values import lines_of
from schemas.display.versions import HIDES_MORE_FROM, SHOWS_ENDS_FROM

ARGUMENTS_MAX_CHARS = 2_000
ARGUMENTS_MAX_LINES = 40
ARGUMENTS_MAX_DEPTH = 4
TEXT_MAX_CHARS = 2_000
HIDES = frozenset({"ansi", "bidi", "control", "covering", "padding", "tag", "zero_width"})


class Look(NamedTuple):
    """The findings in the agent's part of a view."""

    must_read: bool
    badges: tuple[Badge, ...]


def must_be_read_whole(values: tuple[str, ...], texts: Iterable[str], version: int) -> bool:
    """Returns True if a person must have seen the whole view; see `look_at`."""
    said = tuple(texts)
    return _is_long(values, said) or _remembered(values, said, version).must_read


def look_at(values: tuple[str, ...], texts: Iterable[str], version: int) -> Look:
    """Check the agent's part of a view, without rendering the whole view.

    Args:
        values: the call's arguments, or what a question offers (`offer_of`): canonical JSON.
        texts: the agent's other texts.
        version: the version of the hold's view.
    """
    said = tuple(texts)
    look = _look if _is_long(values, said) else _remembered
    return look(values, said, version)


def _look(values: tuple[str, ...], texts: tuple[str, ...], version: int) -> Look:
    # In every version a view must be read whole if the rules of version 2 find something hidden in it.
    badges = Badges(max(version, HIDES_MORE_FROM))
    is_long = _is_long(values, texts)
    for text in texts:
        escaped(text, badges)
        if version >= SHOWS_ENDS_FROM and "\n" not in text:
            badge_ends(text, badges)
    if not (all(map(is_plain, values)) and _are_small(values)):
        parsed = [parse_strict(value) for value in values]
        lines = sum(len(lines_of(value, badges)) for value in parsed)
        deepest = max(map(_depth, parsed), default=0)
        is_long = is_long or lines > ARGUMENTS_MAX_LINES or deepest > ARGUMENTS_MAX_DEPTH
    found = badges.sorted()
    return Look(is_long or not HIDES.isdisjoint(found), found)


# A cache for short texts: a decision checks them, and then its fold again.
_remembered = lru_cache(maxsize=1024)(_look)


def _is_long(values: tuple[str, ...], texts: tuple[str, ...]) -> bool:
    return sum(map(len, values)) > ARGUMENTS_MAX_CHARS or any(len(text) > TEXT_MAX_CHARS for text in texts)


def _are_small(values: tuple[str, ...]) -> bool:
    """Returns True if values surely have neither too many lines nor too many levels, by counting characters."""
    opened = sum(value.count("{") + value.count("[") for value in values)
    commas = sum(value.count(",") for value in values)
    return opened <= ARGUMENTS_MAX_DEPTH and commas + 2 * opened + len(values) <= ARGUMENTS_MAX_LINES + 1


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
