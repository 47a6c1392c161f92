"""The tokens that come over HTTP to an MCP server: how many invalid ones it passes on.

All calls reach the gateway from this process, which the gateway refuses for a while if too many tokens fail: those of
one client would be the failures of all. So this process passes on fewer than the gateway permits to one address, and
then only tokens that were valid before.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from placet.errors import QuotaExceeded, Unauthenticated

# Half of what the gateway permits to one address (docs/doors.md).
FAILURES_PER_S = 25.0
BURST = 100
KNOWN_MAX = 4_096


class CallersTokens:
    """Which tokens were valid, and how many were not."""

    def __init__(self) -> None:
        """Begin without failures."""
        self._known: OrderedDict[str, None] = OrderedDict()
        # When all failures are made good: the generic cell rate algorithm, as for the limits of the gateway.
        self._good_at_s = 0.0

    @contextmanager
    def passing(self, token: str) -> Iterator[None]:
        """Pass a token on within this context, and note whether the gateway accepts it.

        One that was not valid before counts as a failure until it is known: as many can be on their way as may fail.

        Raises:
            QuotaExceeded: too many others failed, and it was not valid before.
        """
        was_known, has_failed = token in self._known, False
        if not was_known:
            self._check()
            self._fail(1)
        try:
            yield
        except Unauthenticated:
            has_failed = True
            raise
        else:
            self._remember(token)
        finally:
            if has_failed and was_known:
                self._known.pop(token, None)
                self._fail(1)
            elif not has_failed and not was_known:
                self._fail(-1)

    def _check(self) -> None:
        over_s = self._good_at_s - time.monotonic() - BURST / FAILURES_PER_S
        if over_s > 0:
            wait_s = math.ceil(over_s)
            detail = f"too many calls here had no valid token: try again in {wait_s} s"
            raise QuotaExceeded("quota", 429, detail, {"retry_after": wait_s})

    def _fail(self, times: int) -> None:
        self._good_at_s = max(self._good_at_s, time.monotonic()) + times / FAILURES_PER_S

    def _remember(self, token: str) -> None:
        self._known[token] = None
        self._known.move_to_end(token)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
