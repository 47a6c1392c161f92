"""How much of a decider's time one tenant's larger work may take: conditions, schemas, commands. The rest is others'.

Work is charged when it is done, by the time that it took. Whoever has used up its share has its larger work put off
until time has given some back; small work is never charged.
"""

from collections import OrderedDict
from collections.abc import Callable

# A second of wall time gives back so many seconds of work, up to the burst.
PART = 0.25
BURST_S = 0.25
# No work takes as long, unless the process or its machine stood still meanwhile, which is no tenant's doing.
DEBT_MAX_S = 5.0
REMEMBERED_MAX = 10_000


class Shares:
    """What each tenant has left, in seconds."""

    def __init__(self, clock_s: Callable[[], float], part: float = PART, burst_s: float = BURST_S) -> None:
        """Begin with whole shares.

        Args:
            clock_s: seconds of a clock that never goes back.
            part: of one, what each tenant may have of the time.
            burst_s: what it may have at once.
        """
        self._clock_s = clock_s
        self._part, self._burst_s = part, burst_s
        # Tenant → what was left, and when; who is not in it has its whole share.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def is_spent(self, tenant: str) -> bool:
        """Whether the tenant's larger work has to wait."""
        return self._now(tenant)[0] <= 0

    def charge(self, tenant: str, seconds: float) -> None:
        """So much work was done for the tenant; it never owes more than `DEBT_MAX_S`."""
        left, now_s = self._now(tenant)
        self._left[tenant] = (max(left - seconds, -DEBT_MAX_S), now_s)
        self._left.move_to_end(tenant)
        if len(self._left) > REMEMBERED_MAX:
            self._left.popitem(last=False)

    def _now(self, tenant: str) -> tuple[float, float]:
        now_s = self._clock_s()
        left, at_s = self._left.get(tenant, (self._burst_s, now_s))
        return min(self._burst_s, left + (now_s - at_s) * self._part), now_s
