"""Limits on a decider's time for one tenant's larger work: conditions, schemas, commands. The rest is for others.

Work is charged when it is done, by the time that it took. If a tenant has used up its share, its larger work is put
off until time has restored some of it; small work is never charged.
"""

from collections import OrderedDict
from collections.abc import Callable

# Each second of wall time restores this many seconds of work, up to the burst.
PART = 0.25
BURST_S = 0.25
# No work takes this long, unless the process or its machine stood still, which is not the tenant's fault.
DEBT_MAX_S = 5.0
REMEMBERED_MAX = 10_000


class Shares:
    """The time that each tenant has left, in seconds."""

    def __init__(self, clock_s: Callable[[], float], part: float = PART, burst_s: float = BURST_S) -> None:
        """Begin with whole shares.

        Args:
            clock_s: seconds of a monotonic clock.
            part: the fraction of the time that each tenant can have.
            burst_s: the most that it can have at once.
        """
        self._clock_s = clock_s
        self._part, self._burst_s = part, burst_s
        # Tenant → the time left, and when that was; tenants that are not in it have their whole share.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def is_spent(self, tenant: str) -> bool:
        """True if the tenant's larger work must wait."""
        return self._now(tenant)[0] <= 0

    def charge(self, tenant: str, seconds: float) -> None:
        """Charge the tenant for work; its debt is never more than `DEBT_MAX_S`."""
        left, now_s = self._now(tenant)
        self._left[tenant] = (max(left - seconds, -DEBT_MAX_S), now_s)
        self._left.move_to_end(tenant)
        if len(self._left) > REMEMBERED_MAX:
            self._left.popitem(last=False)

    def _now(self, tenant: str) -> tuple[float, float]:
        now_s = self._clock_s()
        left, at_s = self._left.get(tenant, (self._burst_s, now_s))
        return min(self._burst_s, left + (now_s - at_s) * self._part), now_s
