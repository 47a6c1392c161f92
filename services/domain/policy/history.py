"""The history of a call's values: new to its agent and tool, or out of an untrusted output of its run."""

import logging
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from schemas.call_history import CallHistory
from schemas.trust_family import named_paths
from services.domain.policy.identifying import Identifying, Number, identifying_of
from services.domain.policy.leaves import TooMany, joined
from services.domain.trust.approved import Approved
from services.domain.untrusted import NO_WORDS, WordsOfRun

logger = logging.getLogger(__name__)
# Of a call whose values are not looked at, so many arguments are named.
NAMED_MAX = 32


def nobody_is_against(digest: str) -> bool:
    """Nothing was decided that trust has not weighed."""
    return False


def history_of(
    arguments: Mapping[str, Any],
    approved: Approved | None,
    words: WordsOfRun = NO_WORDS,
    request: str = "",
    *,
    risk_parts: Container[str] = (),
    terms: str | None = None,
    is_against: Callable[[str], bool] = nobody_is_against,
) -> CallHistory:
    """The history of a call.

    Args:
        arguments: the arguments, parsed JSON.
        approved: what people have approved for the call's agent and tool; None while trust is missing.
        words: what untrusted tools returned in the call's run, and what people said in it.
        request: what the run was asked for.
        risk_parts: the parts of the risk of the tool.
        terms: the terms of the arguments (`services.domain.policy.trust_class`); None for a call in no class, which
            trust never releases.
        is_against: True for the digest of a value if people were against a call with it, and trust has not weighed
            that yet.
    """
    try:
        found = identifying_of(arguments, risk_parts)
        history = _history_of(found, approved, words, request, is_against)
        apart = () if approved is None or terms is None else _apart(found, approved, terms, history.novel)
        return replace(history, apart=apart) if apart else history
    except Exception as error:
        if not isinstance(error, TooMany):
            logger.exception("the values of a call were not looked at")
        # As if nothing about them was known, so that people are asked.
        return _unread(arguments, is_known=approved is not None)


def _history_of(
    found: Identifying,
    approved: Approved | None,
    words: WordsOfRun,
    request: str,
    is_against: Callable[[str], bool],
) -> CallHistory:
    texts = words.tainted([origin for value in found.values for origin in value.origins], request)
    tainted = {value for value in found.values if not texts.isdisjoint(value.origins)}
    history = CallHistory(
        tainted=_sorted(value.path for value in tainted),
        sources=tuple(dict.fromkeys((*words.sources, *words.reading))) if tainted else (),
        values=tuple(dict.fromkeys(value.digest for value in found.values)),
        numbers=_ranges(found.numbers),
        is_known=approved is not None,
    )
    return history if approved is None else _compared(history, found, tainted, approved, is_against)


def _compared(
    history: CallHistory,
    found: Identifying,
    tainted: set[Any],
    approved: Approved,
    is_against: Callable[[str], bool],
) -> CallHistory:
    """The history with what is new in comparison with what people have approved."""
    unknown = {value for value in found.values if not approved.has(value.digest)}
    novel = [value.path for value in unknown if not value.is_weak or value in tainted]
    known = [value.digest for value in found.values if value not in unknown and not value.is_weak]
    novel += [number.path for number in found.numbers if not approved.covers(number.path, number.size, known)]
    parts = ["novel"] if novel else []
    if not unknown.isdisjoint(tainted):
        parts.append("tainted")
    opposed = [value.path for value in unknown if any(map(approved.opposes, value.digests))]
    opposed += [value.path for value in found.values if any(map(is_against, value.digests))]
    return replace(history, parts=tuple(parts), novel=_sorted(novel), opposed=_sorted(opposed))


def _apart(found: Identifying, approved: Approved, terms: str, novel: tuple[str, ...]) -> tuple[str, ...]:
    """The paths of what is known, unless people have approved it together in calls of these terms.

    Beside a new value that is every number: what those get who are known says nothing about a stranger.
    """
    known = [value for value in found.values if not value.is_weak and approved.has(value.digest)]
    digests = [value.digest for value in known]
    is_beside = any(not approved.has(value.digest) and value.path in novel for value in found.values)
    numbers = [
        number for number in found.numbers if is_beside or approved.covers(number.path, number.size, digests)
    ]
    # As classes name it, where something must have been new in approved calls as well.
    beside = frozenset(named_paths(novel))
    paths = _sorted([*(value.path for value in known), *(number.path for number in numbers)])
    standing = frozenset(paths).difference(novel)
    if not paths or approved.joins(terms, digests, _ranges(numbers), beside, standing):
        return ()
    return paths


def _unread(arguments: Mapping[str, Any], *, is_known: bool) -> CallHistory:
    """The history of a call whose values are not looked at: everything in it counts as new and as tainted."""
    names = _sorted(joined("", name) for name in list(arguments)[:NAMED_MAX])
    parts = ("novel", "tainted") if is_known else ()
    return CallHistory(parts=parts, novel=names, tainted=names, is_whole=False, is_known=is_known)


def _ranges(numbers: Iterable[Number]) -> tuple[tuple[str, float, float], ...]:
    """The least and the greatest number of each path."""
    found: dict[str, tuple[float, float]] = {}
    for path, size in numbers:
        least, most = found.get(path, (size, size))
        found[path] = min(least, size), max(most, size)
    return tuple((path, *found[path]) for path in sorted(found))


def _sorted(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(paths)))
