"""Whether what a process derives from the log reaches it: the rule by which trust is believed or missing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vitals.boot_clock import seconds_since_boot

# What is derived may be behind the log by this much; beyond it, what people have decided meanwhile is unknown.
BEHIND_MAX_S = 15.0
# How often those who ask look at where the log ends.
LOOK_EVERY_S = 3.0
Ends = Mapping[int, int]  # partition of the log → one past its last offset


@dataclass(slots=True)
class LogReach:
    """Where the log ended `BEHIND_MAX_S` ago, and at the first look: what does not reach that is not to be believed.

    Nor is anything before the first look, and once nobody has seen for that long where one of the partitions ends.
    """

    clock: Callable[[], float] = seconds_since_boot
    _must_reach: Ends = field(default_factory=dict)
    _looks: deque[tuple[float, Ends]] = field(default_factory=deque)
    # When the end of each partition was seen last.
    _seen_at: dict[int, float] = field(default_factory=dict)

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions whose end was ever seen."""
        return frozenset(self._seen_at)

    def look(self, ends: Ends) -> None:
        """Take where the log ends now, as far as that can be read: it must be reached `BEHIND_MAX_S` from now on."""
        now = self.clock()
        self._looks.append((now, ends))
        # Nobody knows since when a partition ends there that was not seen for long: that must be reached at once.
        self._require({number: end for number, end in ends.items() if self._is_unseen(number, now)})
        self._seen_at.update(dict.fromkeys(ends, now))
        while self._looks and self._looks[0][0] <= now - BEHIND_MAX_S:
            _, due = self._looks.popleft()
            self._require(due)

    def is_seen(self) -> bool:
        """Whether it is known of each partition where it ended no longer than `BEHIND_MAX_S` ago."""
        now = self.clock()
        return bool(self._seen_at) and not any(self._is_unseen(number, now) for number in self._seen_at)

    def is_reached(self, through: Ends) -> bool:
        """Whether what is counted up to these offsets is to be believed now.

        Args:
            through: partition of the log → the last offset that is counted.
        """
        return self.is_seen() and all(
            through.get(number, -1) >= end - 1 for number, end in self._must_reach.items()
        )

    def _require(self, ends: Ends) -> None:
        # Ends only grow.
        grown = {number: max(end, self._must_reach.get(number, end)) for number, end in ends.items()}
        self._must_reach = {**self._must_reach, **grown}

    def _is_unseen(self, number: int, now_s: float) -> bool:
        seen_at = self._seen_at.get(number)
        return seen_at is None or seen_at < now_s - BEHIND_MAX_S
