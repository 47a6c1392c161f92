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


def must_be_read_whole(arguments: str, texts: Iterable[str], version: int) -> bool:
    """Returns True if a person must have seen the whole view; see `look_at`."""
    said = tuple(texts)
    return _is_long(arguments, said) or _remembered(arguments, said, version).must_read


def look_at(arguments: str, texts: Iterable[str], version: int) -> Look:
    """Check the agent's part of a view, without rendering the whole view.

    Args:
        arguments: the call's arguments, canonical JSON; `{}` for a request.
        texts: the agent's other texts.
        version: the version of the hold's view.
    """
    said = tuple(texts)
    look = _look if _is_long(arguments, said) else _remembered
    return look(arguments, said, version)


def _look(arguments: str, texts: tuple[str, ...], version: int) -> Look:
    # In every version a view must be read whole if the rules of version 2 find something hidden in it.
    badges = Badges(max(version, HIDES_MORE_FROM))
    is_long = _is_long(arguments, texts)
    for text in texts:
        escaped(text, badges)
        if version >= SHOWS_ENDS_FROM and "\n" not in text:
            badge_ends(text, badges)
    if not (is_plain(arguments) and _is_small(arguments)):
        value = parse_strict(arguments)
        lines = lines_of(value, badges)
        is_long = is_long or len(lines) > ARGUMENTS_MAX_LINES or _depth(value) > ARGUMENTS_MAX_DEPTH
    found = badges.sorted()
    return Look(is_long or not HIDES.isdisjoint(found), found)


# A cache for short texts: a decision checks them, and then its fold again.
_remembered = lru_cache(maxsize=1024)(_look)


def _is_long(arguments: str, texts: tuple[str, ...]) -> bool:
    return len(arguments) > ARGUMENTS_MAX_CHARS or any(len(text) > TEXT_MAX_CHARS for text in texts)


def _is_small(arguments: str) -> bool:
    """Returns True if arguments surely have neither too many lines nor too many levels, by counting characters."""
    opened = arguments.count("{") + arguments.count("[")
    return opened <= ARGUMENTS_MAX_DEPTH and arguments.count(",") + 2 * opened <= ARGUMENTS_MAX_LINES


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
