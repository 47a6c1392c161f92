"""Which expressions and schemas had the helper killed lately, so that one of them cannot do so again and again.

Two tenants may have the same condition: what one of them had it applied to says nothing of the other's calls.

While a helper starts nobody's larger work is done: without this, one agent of one tenant could keep all of it from
being done, for everybody.
"""

from collections import OrderedDict
from collections.abc import Callable

WITHIN_S = 60.0
REMEMBERED_MAX = 1_024


class Overruns:
    """Remembers when each text overran its budget, or ended the helper, the last two times."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        """Begin with none.

        Args:
            clock_s: seconds of a clock that never goes back.
        """
        self._clock_s = clock_s
        self._last_two: OrderedDict[tuple[str, str], tuple[float, ...]] = OrderedDict()

    def note(self, tenant: str, text: str) -> None:
        """The tenant's text has overrun just now."""
        earlier = self._last_two.pop((tenant, text), ())
        self._last_two[tenant, text] = (*earlier[-1:], self._clock_s())
        if len(self._last_two) > REMEMBERED_MAX:
            self._last_two.popitem(last=False)

    def bars(self, tenant: str, text: str) -> bool:
        """Whether it is not to be tried now: it has overrun twice within the last minute."""
        times = self._last_two.get((tenant, text), ())
        return len(times) == 2 and self._clock_s() - times[0] < WITHIN_S
