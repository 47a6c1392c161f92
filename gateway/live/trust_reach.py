"""Whether the trust that this gateway has read reaches the log, by the rule of the deciders, which alone release.

Deciders have theirs in `services.runtime.trust_tail`; what is assessed here must not be trusted where they would ask.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vitals.boot_clock import seconds_since_boot

# Trust may be behind the log by this much, as in deciders; a trust role that is down or frozen is behind by more.
BEHIND_MAX_S = 15.0
Ends = Mapping[int, int]  # partition of the log → one past its last offset


@dataclass(slots=True)
class TrustReach:
    """Where the log ended `BEHIND_MAX_S` ago, and at the first look: trust that does not reach that is missing.

    It is missing, too, before the first look, and once nobody has looked for that long.
    """

    clock: Callable[[], float] = seconds_since_boot
    _must_reach: Ends = field(default_factory=dict)
    _looks: deque[tuple[float, Ends]] = field(default_factory=deque)
    _looked_at_s: float | None = None

    def look(self, ends: Ends) -> None:
        """Take where all partitions of the log end now: trust must reach that `BEHIND_MAX_S` from now on."""
        now = self.clock()
        if self._is_blind(now):
            # Nobody knows since when the log ends there.
            self._must_reach = ends
            self._looks.clear()
        self._looked_at_s = now
        self._looks.append((now, ends))
        while self._looks[0][0] <= now - BEHIND_MAX_S:
            # Ends only grow.
            _, self._must_reach = self._looks.popleft()

    def is_reached(self, through: Ends) -> bool:
        """Whether trust counts as complete.

        Args:
            through: partition of the log → the last offset that is counted.
        """
        return not self._is_blind(self.clock()) and all(
            through.get(number, -1) >= end - 1 for number, end in self._must_reach.items()
        )

    def _is_blind(self, now_s: float) -> bool:
        return self._looked_at_s is None or self._looked_at_s < now_s - BEHIND_MAX_S
