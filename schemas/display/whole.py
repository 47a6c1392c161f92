"""Whether a view must have been seen whole before its hold may be approved or edited.

So where something could be overlooked: many or deep arguments, and whatever hides text or pushes it out of sight.
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
    """What was found in the agent's part of a view."""

    must_read: bool
    badges: tuple[Badge, ...]


def must_be_read_whole(arguments: str, texts: Iterable[str], version: int) -> bool:
    """Whether a person must have had the whole view; see `look_at`."""
    said = tuple(texts)
    return _is_long(arguments, said) or _remembered(arguments, said, version).must_read


def look_at(arguments: str, texts: Iterable[str], version: int) -> Look:
    """Look at what an agent says of a call, without rendering all of the view.

    Args:
        arguments: the call's, canonical JSON; `{}` for a request.
        texts: its own words beside them.
        version: of the hold's view.
    """
    said = tuple(texts)
    look = _look if _is_long(arguments, said) else _remembered
    return look(arguments, said, version)


def _look(arguments: str, texts: tuple[str, ...], version: int) -> Look:
    # Whatever its version shows, nobody approves a hold unread in which version 2 finds something hidden.
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


# Of what is not long: a decision looks, and then its fold.
_remembered = lru_cache(maxsize=1024)(_look)


def _is_long(arguments: str, texts: tuple[str, ...]) -> bool:
    return len(arguments) > ARGUMENTS_MAX_CHARS or any(len(text) > TEXT_MAX_CHARS for text in texts)


def _is_small(arguments: str) -> bool:
    """Whether it can have neither too many lines nor too many levels, without a look at each."""
    opened = arguments.count("{") + arguments.count("[")
    return opened <= ARGUMENTS_MAX_DEPTH and arguments.count(",") + 2 * opened <= ARGUMENTS_MAX_LINES


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
