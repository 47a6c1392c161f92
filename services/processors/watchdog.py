"""The watchdog: ends the process if it is behind and makes no progress. Faust can stall after a rebalance.

It runs in its own thread, so that it also notices an event loop that hangs. It reads the ends of the partitions from
the broker instead of trusting the consumer, whose own view stands still when it stalls.
"""

import faulthandler
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from services.processors.ending import end_process
from services.processors.errors import EXIT_STALLED, TrustError

logger = logging.getLogger(__name__)

# The gauge in the place of the partitions' ones until they are assigned and loaded: what is left is not known then.
REBALANCE = "the rebalance"


class Gauge(NamedTuple):
    """The progress of one item: `position` changes with any progress, `behind` is what is left (0: idle)."""

    position: int
    behind: int


class WorkerStops(Exception):
    """The worker is stopping and its loops end, so the progress can no longer be read."""


class StallDetector:
    """Finds gauges that are behind and have not moved for too long. It has no clock of its own."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._moved: dict[str, tuple[int, float]] = {}

    def observe(self, now_s: float, gauges: Mapping[str, Gauge]) -> list[str]:
        """Compare the gauges with the earlier ones.

        Args:
            now_s: monotonic seconds.
            gauges: the gauges to watch now, by name; those that are missing are dropped.

        Returns:
            The names of the gauges that stall.
        """
        before, self._moved = self._moved, {}
        for name, gauge in gauges.items():
            position, since = before.get(name, (gauge.position, now_s))
            moved = gauge.behind <= 0 or gauge.position != position
            self._moved[name] = (gauge.position, now_s if moved else since)
        return [name for name, (_, since) in self._moved.items() if now_s - since >= self._limit_s]


class Lease:
    """Checks that this process was never suspended for long, so that it is still a member of its group.

    A process that was suspended for longer than the group's session has lost its partitions without noticing.
    """

    def __init__(self, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = limit_s
        self._clock = clock
        self._seen_s = clock()

    def renew(self) -> None:
        """Record that the process is awake.

        Raises:
            TrustError: it was suspended for too long.
        """
        self.check()
        self._seen_s = self._clock()

    def check(self) -> None:
        """Check the lease before writing.

        Raises:
            TrustError: the process was suspended for longer than the group's session.
        """
        away_s = self._clock() - self._seen_s
        if away_s > self._limit_s:
            raise TrustError(
                f"The processor was stopped for {away_s:.0f} s: it starts again as a new member."
            )


class Watchdog(threading.Thread):
    """Reads the gauges periodically, and ends the process by itself, since the event loop may be unable to."""

    def __init__(
        self,
        limit_s: float,
        lease: Lease,
        read: Callable[[float], Mapping[str, Gauge]],
        tell: Callable[[Mapping[str, Gauge]], None] = lambda gauges: None,
    ) -> None:
        """Prepare the thread.

        Args:
            limit_s: how long something may be behind without progress.
            lease: renewed at every period.
            read: returns the gauges within the given seconds; an error counts as an item that does not move.
            tell: called with the gauges whenever they could be read.
        """
        super().__init__(name="watchdog", daemon=True)
        self._detector = StallDetector(limit_s)
        self._lease = lease
        self._read = read
        self._tell = tell
        self._period_s = min(1.0, limit_s / 4)
        self._latest: Mapping[str, Gauge] = {}
        self._ended = threading.Event()

    def run(self) -> None:
        """Watch until `stop`."""
        while not self._ended.wait(self._period_s):
            try:
                self._lease.renew()
                stalled = self._detector.observe(time.monotonic(), self._gauges())
            except TrustError as error:
                self._end(str(error), error.exit_code)
                return
            if stalled:
                names = ", ".join(stalled)
                self._end(
                    f"No progress on {names}: the processor ends so that it can be restarted.", EXIT_STALLED
                )
                return

    def stop(self) -> None:
        """Stop watching."""
        self._ended.set()

    def _gauges(self) -> Mapping[str, Gauge]:
        try:
            self._latest = self._read(self._period_s)
        except TrustError:
            raise
        except WorkerStops:  # the process is about to end; if it does not, it counts as stalled
            return {**self._latest, "the end of the process": Gauge(position=0, behind=1)}
        except Exception as error:  # whatever the cause, lag cannot be ruled out
            logger.info("the lag is not known: %r", error)
            return {**self._latest, "the lag": Gauge(position=0, behind=1)}
        self._tell(self._latest)
        return self._latest

    def _end(self, message: str, code: int) -> None:
        if self._ended.is_set():
            return
        faulthandler.dump_traceback()
        end_process(code, message)
