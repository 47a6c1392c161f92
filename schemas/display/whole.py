"""Whether a view must have been seen whole before its hold may be approved or edited.

So where something could be overlooked: many or deep arguments, and whatever hides text or pushes it out of sight.
"""

from collections.abc import Iterable
from typing import Any

from schemas.canonical import parse_strict
from schemas.display.escape import Badges, escaped, is_plain
from schemas.display.values import lines_of

ARGUMENTS_MAX_CHARS = 2_000
ARGUMENTS_MAX_LINES = 40
ARGUMENTS_MAX_DEPTH = 4
TEXT_MAX_CHARS = 2_000
HIDES = frozenset({"ansi", "bidi", "control", "padding", "tag", "zero_width"})


def must_be_read_whole(arguments: str, texts: Iterable[str]) -> bool:
    """Whether a person must have had the whole view.

    Args:
        arguments: the call's, canonical JSON; `{}` for a request.
        texts: the agent's own words beside them.
    """
    if len(arguments) > ARGUMENTS_MAX_CHARS:
        return True
    for text in texts:
        if len(text) > TEXT_MAX_CHARS or (not is_plain(text) and _hides(text)):
            return True
    if arguments == "{}" or (is_plain(arguments) and _is_small(arguments)):
        return False
    value = parse_strict(arguments)
    badges = Badges()
    lines = lines_of(value, badges)
    return (
        len(lines) > ARGUMENTS_MAX_LINES
        or _depth(value) > ARGUMENTS_MAX_DEPTH
        or not HIDES.isdisjoint(badges.sorted())
    )


def _is_small(arguments: str) -> bool:
    """Whether it can have neither too many lines nor too many levels, without a look at each."""
    opened = arguments.count("{") + arguments.count("[")
    return opened <= ARGUMENTS_MAX_DEPTH and arguments.count(",") + 2 * opened <= ARGUMENTS_MAX_LINES


def _hides(text: str) -> bool:
    badges = Badges()
    escaped(text, badges)
    return not HIDES.isdisjoint(badges.sorted())


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
