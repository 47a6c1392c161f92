"""Detects open transactions of other producers: nothing after one in its partition is delivered to any reader.

Only producers with a transactional id can open one; docs/log-contract.md says that nobody should be given one.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from log.places import TopicPartition

# A transaction that makes progress is no problem; one that does not advance for this long is.
HELD_AFTER_S = 3.0


@dataclass
class OpenTransactions:
    """How long transactions have been open in a feed's partitions.

    Attributes:
        clock: monotonic seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _since: dict[tuple[TopicPartition, int], float] = field(default_factory=dict)

    def trouble(self, held: Mapping[TopicPartition, int]) -> str:
        """The message about stuck transactions; empty if there are none.

        Args:
            held: by partition, the offset after which nothing is delivered; see `CommandFeed.held_back`.
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
