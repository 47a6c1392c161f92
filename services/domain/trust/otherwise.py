"""What approvals of a tool are of, where none is of a call's class: for people to read."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from schemas.trust_family import DIGEST, named_paths
from services.domain.trust.approved import Approved

PATHS_NAMED_MAX = 3
_REASON = re.compile(
    r"[0-9]+ approvals? of .* (is|are) of (a call|calls) .*; none is of such a call.*", re.DOTALL
)


def approved_otherwise(approved: Approved, tool: str, terms: str, novel: Iterable[str]) -> str:
    """What the approvals in force are of, where none is of a call's class; empty if there are none.

    Args:
        approved: what people have approved for the call's agent and tool.
        tool: the tool's name.
        terms: the terms of the call's arguments.
        novel: the paths of what is new in the call.
    """
    own = frozenset(named_paths(novel))
    alike: Counter[frozenset[str]] = Counter()
    for one in approved.together.get(terms, ()):
        alike[one.novel] += len(one.numbers)
    # The same novelty by another class is another risk, which an agent's claims or tainted values make.
    same = alike.pop(own, 0)
    such = f"such a call{_with_new(own, ' with something new at ')}"
    if found := max(alike.items(), key=lambda item: (item[1], sorted(item[0])), default=None):
        paths, count = found
        theirs = _with_new(paths, "with something new at ") or "with nothing new"
        return f"{_counted(count, tool)} {theirs}; none is of {such}"
    if same:
        return f"{_counted(same, tool)} of another risk; none is of {such}"
    others = sum(len(one.numbers) for parts in approved.together.values() for one in parts)
    return f"{_counted(others, tool)} with arguments of other kinds; none is of {such}" if others else ""


def is_of_others(why: str) -> bool:
    """True if a recorded reason is one of `approved_otherwise`."""
    return _REASON.fullmatch(why) is not None


def named(paths: Sequence[str]) -> str:
    """Paths for a sentence: the first, and how many more there are."""
    more = len(paths) - PATHS_NAMED_MAX
    return ", ".join(paths[:PATHS_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _with_new(paths: frozenset[str], before: str) -> str:
    if not paths:
        return ""
    is_digest = any(path.startswith(DIGEST) for path in paths)
    return before + ("many arguments" if is_digest else named(sorted(paths)))


def _counted(count: int, tool: str) -> str:
    return f"{count} approvals of {tool} are of calls" if count != 1 else f"1 approval of {tool} is of a call"
