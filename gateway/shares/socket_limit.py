"""The limit on open sockets of one subject, so that none can use all of a gateway's memory and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.problems import Problem
from schemas.actor import Actor
from schemas.refusals import Refusal

RETRY_AFTER_S = 5


class SocketLimit:
    """Counts open sockets by tenant and subject."""

    def __init__(self, each: int) -> None:
        """Begin with none open.

        Args:
            each: the maximum of one subject.
        """
        self._each = each
        self._taken: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def open(self, actor: Actor) -> Iterator[None]:
        """Count one open socket.

        Raises:
            Problem: 429, the subject has the maximum number open.
        """
        owner = (actor.tenant, actor.subject)
        if self._taken[owner] >= self._each:
            detail = (
                f"{self._each} sockets of this subject are open: close some, or send more over one of them"
            )
            raise Problem(Refusal.QUOTA, detail, retry_after=RETRY_AFTER_S)
        self._taken[owner] += 1
        try:
            yield
        finally:
            self._taken[owner] -= 1
            if not self._taken[owner]:
                del self._taken[owner]

    def __len__(self) -> int:
        return self._taken.total()
