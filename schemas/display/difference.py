"""The differences of two arguments, path by path: what was removed, added or changed, with both values."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from schemas.sensitive import Path, is_placeholder

# With more changes than this, or with longer paths in total, only the top level is compared: a hostile value must not
# make the difference larger than itself.
CHANGES_MAX = 200
PATHS_MAX_CHARS = 20_000


class Absent:
    """Marks that there is no value on this side."""


ABSENT = Absent()


class Change(NamedTuple):
    """A path at which two values differ; `ABSENT` for a side without a value there."""

    path: Path
    before: Any
    after: Any


def changes(before: Any, after: Any) -> list[Change]:
    """The changes from one value to another, in the order of the paths of the first, then of the second."""
    found: list[Change] = []
    size = 0
    for change in _changes(before, after, ()):
        found.append(change)
        size += sum(len(str(step)) + 1 for step in change.path)
        if len(found) > CHANGES_MAX or size > PATHS_MAX_CHARS:
            return list(_at_the_top(before, after))
    return found


def _changes(before: Any, after: Any, path: Path) -> Iterator[Change]:
    if _same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict) and not _is_leaf(before, after):
        for name in dict.fromkeys((*before, *after)):
            yield from _changes(before.get(name, ABSENT), after.get(name, ABSENT), (*path, name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _changes(one, other, (*path, index))
    else:
        yield Change(path, before, after)


def _at_the_top(before: Any, after: Any) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name, ABSENT), after.get(name, ABSENT)
        if not _same(one, other):
            yield Change((name,), one, other)


def _is_leaf(before: Any, after: Any) -> bool:
    return is_placeholder(before) or is_placeholder(after)


def _same(before: Any, after: Any) -> bool:
    """Returns True if two values are equal as JSON: true is not 1, unlike in Python."""
    if isinstance(before, bool) or isinstance(after, bool):
        return before is after
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_same(before[name], after[name]) for name in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_same, before, after))
    return bool(before == after)
