"""Another producer's transaction that stays open: nothing behind it in its partition is delivered to anybody.

Only producers with a transactional id can open one; docs/log-contract.md asks that nobody be given one.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from log.places import TopicPartition

# A transaction that goes on is no trouble; one that stands still for so long is.
HELD_AFTER_S = 3.0


@dataclass
class HeldBack:
    """How long transactions have been open, of a feed's partitions.

    Attributes:
        clock: monotonic seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _since: dict[tuple[TopicPartition, int], float] = field(default_factory=dict)

    def trouble(self, held: Mapping[TopicPartition, int]) -> str:
        """What is to be said of them; empty where all go on.

        Args:
            held: by partition, the offset behind which nothing is delivered; see `CommandFeed.held_back`.
        """
        now = self.clock()
        self._since = {place: self._since.get(place, now) for place in held.items()}
        stuck = [place for place, since in self._since.items() if now - since > HELD_AFTER_S]
        if not stuck:
            return ""
        where = ", ".join(
            f"{tp.topic}/{tp.partition} from offset {offset} on" for tp, offset in sorted(stuck)
        )
        return f"a transaction of another producer is open and holds back {where}: end it"
