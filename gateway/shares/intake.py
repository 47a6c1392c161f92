"""What clients send is parsed when it is its turn; what is long is parsed before, at its sender's cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gateway.problems import Problem
from gateway.shares.work import Owner, Work

# A longer one may take so long to parse that others would notice: it is parsed on a thread.
LONG_BYTES = 16 * 1024

T = TypeVar("T")


async def taken_in(work: Work, owner: Owner, raw: bytes, read: Callable[[bytes], T]) -> Callable[[], T]:
    """Take a body or message in.

    Args:
        work: whose threads and shares it takes.
        owner: whose share is charged.
        raw: the body.
        read: parses it; raises `Problem`.

    Returns:
        What gives the parsed value, or raises its refusal.
    """
    if len(raw) > LONG_BYTES:
        return await work.done(owner, lambda: _parsed(raw, read))
    return lambda: read(raw)


def _parsed(raw: bytes, read: Callable[[bytes], T]) -> Callable[[], T]:
    """The value, or its refusal, kept for whoever asks for it."""
    try:
        value = read(raw)
    except Problem as problem:
        refusal = problem
    else:
        return lambda: value

    def refused() -> T:
        raise refusal

    return refused
