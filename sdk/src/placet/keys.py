"""Idempotency keys that a caller chooses, so that a change can be repeated after its answer was lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from placet.transport.port import Request

_KEY = re.compile(r"[!-~]([ -~]{0,254}[!-~])?")


@dataclass
class _Chosen:
    key: str
    is_used: bool = False


_chosen: ContextVar[_Chosen | None] = ContextVar("placet_idempotency_key", default=None)


@contextmanager
def idempotency_key(key: str) -> Iterator[None]:
    """Send the one change that is made within this context under a given idempotency key.

    Without it each change has a random key, under which the client repeats it until its patience ends. A caller that
    repeats a change later, such as a decision after `Unavailable` or `NoAnswer`, uses the same key both times: the
    gateway then returns the first answer instead of `AlreadyDecided`.

    Args:
        key: 1 to 256 printable ASCII characters without spaces around them; another one for each change.

    Raises:
        ValueError: it is not such a key.
    """
    if _KEY.fullmatch(key) is None:
        raise ValueError(
            f"{key!r} is no idempotency key: use 1 to 256 printable ASCII characters without spaces around them"
        )
    token = _chosen.set(_Chosen(key))
    try:
        yield
    finally:
        _chosen.reset(token)


def keyed(request: Request) -> Request:
    """The request under the chosen key; unchanged if none is chosen.

    Raises:
        ValueError: another change has used the key.
    """
    chosen = _chosen.get()
    if chosen is None:
        return request
    if chosen.is_used:
        raise ValueError(f"the idempotency key {chosen.key!r} is used by another change: use one for each")
    chosen.is_used = True
    return replace(request, ref=chosen.key)
