"""The body of a request: read in parts, and counted for the caller while it is in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from starlette.requests import Request

from gateway.problems import Problem
from gateway.shares.budget import UNFINISHED, Budget
from gateway.shares.intake import LONG_BYTES, taken_in
from gateway.shares.work import Owner, Work
from gateway.strictjson import BODY_MAX_BYTES
from schemas.refusals import Refusal

T = TypeVar("T")


async def read_body(
    request: Request, work: Work, budget: Budget, owner: Owner, read: Callable[[bytes], T]
) -> Callable[[], T]:
    """Read a body now, at its sender's cost.

    Returns:
        A function that returns what `read` makes of it, or raises its refusal.

    Raises:
        Problem: 429 quota, too much of what the sender's subject sends is in memory.
    """
    with budget.holding(owner, UNFINISHED) as held:
        raw = await read_raw(request, kept=held.keep)
        return _too_large if raw is None else await taken_in(work, owner, raw, read)


def _uncounted(size: int) -> None:
    return


async def read_raw(
    request: Request, most: int = BODY_MAX_BYTES, kept: Callable[[int], None] = _uncounted
) -> bytes | None:
    """Read a request's body; None if it is over `most` bytes, 1 MiB by default: then no more of it is read.

    Args:
        request: the request.
        most: the maximum.
        kept: called with the bytes that are in memory, if they are many.
    """
    if int(request.headers.get("content-length") or 0) > most:
        return None
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            return None
        if size > LONG_BYTES:
            kept(size)
        parts.append(part)
    return b"".join(parts)


def _too_large() -> Any:
    raise Problem(Refusal.TOO_LARGE, f"the body is over {BODY_MAX_BYTES} bytes")
