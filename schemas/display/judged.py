"""The verdict that a person is shown, and what the past says of the call's values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schemas.call_history import CallHistory

UNKNOWN = "trust is missing, so it is not known which are new"
UNREAD = "too many, or not read alike by all programs; all count as new and tainted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdict that a person is shown.

    `trust` is canonical JSON, or None if it was unknown; `history` is JSON of `schemas.call_history`, `adaptive` of
    `schemas.adaptive`, or None.
    """

    effect: str
    rules: Sequence[str]
    policy_version: str
    reason: str
    detail: str
    risk_score: float
    risk_level: str
    risk_parts: Sequence[str]
    risk_required: float
    trust: str | None
    history: str | None = None
    adaptive: str | None = None


def unread(history: CallHistory) -> Iterator[str]:
    """Why it is not known which values are new; nothing if it is."""
    if not history.is_known:
        yield UNKNOWN
    if not history.is_whole:
        yield UNREAD


def in_short(history: CallHistory) -> Iterator[str]:
    """What a person is told in a list or a refusal: the paths of new and of tainted values, or why nobody knows."""
    if not history.is_whole:
        yield UNREAD
    if history.novel:
        yield f"new: {', '.join(history.novel)}"
    if history.tainted:
        yield f"out of an untrusted output: {', '.join(history.tainted)}"


def named(history: CallHistory, *, tells_new_as_apart: bool = False) -> Iterator[tuple[str, Sequence[str]]]:
    """The paths of new and of tainted values; of verdicts of earlier versions, and of known values, nothing.

    Args:
        history: of the verdict.
        tells_new_as_apart: as earlier versions of the view did, which said of new numbers that they are approved.
    """
    if history.novel:
        yield "new to this agent and tool", history.novel
    if history.opposed:
        yield "people were against calls with", history.opposed
    if apart := history.apart if tells_new_as_apart else history.apart_only:
        yield "approved before, but not together in such a call", apart
    if history.tainted:
        yield "out of an untrusted output of this run", history.tainted
    if history.sources:
        yield "untrusted outputs of", history.sources
