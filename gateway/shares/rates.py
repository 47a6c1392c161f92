"""Rate limits: a token bucket for each caller, stored as a single number."""

from __future__ import annotations

from collections.abc import Hashable

# Callers are forgotten in sweeps; this many can be remembered before the first.
SWEEP_AT = 4_096
# The rounding error of sums; it must not cost the last token of a burst.
ROUNDING_S = 1e-6


class Buckets:
    """Token buckets by caller, each full at first: a burst at once, then the sustained rate.

    The number kept is the time at which the caller's bucket is full again (the generic cell rate algorithm, ITU-T
    I.371, with the bucket counted in seconds), so that a full bucket need not be kept at all.
    """

    def __init__(self, per_s: float, burst_s: float = 1.0) -> None:
        """Begin without callers.

        Args:
            per_s: the sustained rate.
            burst_s: seconds of that rate that can be taken at once; at least one token.
        """
        self._each_s = 1.0 / per_s
        self._burst_s = max(burst_s, self._each_s)
        self._full_at: dict[Hashable, float] = {}
        self._sweep_at = SWEEP_AT

    def wait_s(self, caller: Hashable, now: float) -> float:
        """Take one token.

        Args:
            caller: the caller.
            now: seconds of a clock that never goes back.

        Returns:
            0 if there was one; else the seconds until there is one, and none was taken.
        """
        full_at = max(self._full_at.get(caller, now), now) + self._each_s
        over_s = full_at - now - self._burst_s
        if over_s > ROUNDING_S:
            return over_s
        if len(self._full_at) >= self._sweep_at:
            self._sweep(now)
        self._full_at[caller] = full_at
        return 0.0

    def charge(self, caller: Hashable, now: float, tokens: float) -> float:
        """Take tokens that were used already, even if there are none left.

        Returns:
            The seconds until the caller has paid for what exceeds its burst; 0 if nothing does.
        """
        full_at = max(self._full_at.get(caller, now), now) + tokens * self._each_s
        if tokens:
            if len(self._full_at) >= self._sweep_at:
                self._sweep(now)
            self._full_at[caller] = full_at
        over_s = full_at - now - self._burst_s
        return over_s if over_s > ROUNDING_S else 0.0

    def __len__(self) -> int:
        return len(self._full_at)

    def _sweep(self, now: float) -> None:
        """Forget callers whose bucket is full: those without a request within about the time of a burst."""
        self._full_at = {caller: full_at for caller, full_at in self._full_at.items() if full_at > now}
        self._sweep_at = max(SWEEP_AT, 2 * len(self._full_at))
