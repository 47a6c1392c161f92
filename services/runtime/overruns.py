"""Expressions and schemas that had the helper killed lately, so that they cannot do so again and again.

Two tenants may have the same condition: the values of one tenant's calls say nothing about the other's.

While a helper is starting, no larger work is done for anybody: without this, one agent of one tenant could keep all
larger work from being done.
"""

from collections import OrderedDict
from collections.abc import Callable

WITHIN_S = 60.0
REMEMBERED_MAX = 1_024


class Overruns:
    """Stores the last two times at which each text exceeded its time limit, or ended the helper."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        """Begin without any.

        Args:
            clock_s: seconds of a monotonic clock.
        """
        self._clock_s = clock_s
        self._last_two: OrderedDict[tuple[str, str], tuple[float, ...]] = OrderedDict()

    def note(self, tenant: str, text: str) -> None:
        """The tenant's text has just exceeded the limit."""
        earlier = self._last_two.pop((tenant, text), ())
        self._last_two[tenant, text] = (*earlier[-1:], self._clock_s())
        if len(self._last_two) > REMEMBERED_MAX:
            self._last_two.popitem(last=False)

    def bars(self, tenant: str, text: str) -> bool:
        """True if it must not be tried now: it exceeded the limit twice within the last minute."""
        times = self._last_two.get((tenant, text), ())
        return len(times) == 2 and self._clock_s() - times[0] < WITHIN_S
