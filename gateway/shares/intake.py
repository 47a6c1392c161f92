"""Client input is parsed when it is needed; long input is parsed earlier, on a thread and at its sender's cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gateway.problems import Problem
from gateway.shares.work import Owner, Work

# Longer input may take so long to parse that it would delay others: it is parsed on a thread.
LONG_BYTES = 16 * 1024

T = TypeVar("T")


async def taken_in(work: Work, owner: Owner, raw: bytes, read: Callable[[bytes], T]) -> Callable[[], T]:
    """Take a body or message in.

    Args:
        work: the threads and shares to use.
        owner: the subject that is charged.
        raw: the body.
        read: parses it; raises `Problem`.

    Returns:
        A function that returns the parsed value, or raises its refusal.
    """
    if len(raw) > LONG_BYTES:
        return await work.done(owner, lambda: _parsed(raw, read))
    return lambda: read(raw)


def _parsed(raw: bytes, read: Callable[[bytes], T]) -> Callable[[], T]:
    """Parse now; return a function that returns the value or raises its refusal."""
    try:
        value = read(raw)
    except Problem as problem:
        refusal = problem
    else:
        return lambda: value

    def refused() -> T:
        raise refusal

    return refused
