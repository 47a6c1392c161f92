"""The watchdog: ends the process when it is behind and nothing moves. Faust can stall after a rebalance.

It runs in a thread of its own, so that it also sees an event loop that hangs, and it asks the broker for the
ends of the partitions instead of believing the consumer, whose own view stands still when it stalls.
"""

import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from services.processors.errors import EXIT_STALLED, TrustError

logger = logging.getLogger(__name__)


class Gauge(NamedTuple):
    """How far a thing has come: `position` moves with every progress, `behind` is what is left (0: idle)."""

    position: int
    behind: int


class WorkerStops(Exception):
    """The worker is stopping, and its loops end: nobody can say any more how far anything has come."""


class StallDetector:
    """Tells which gauges are behind and have not moved for too long. It has no clock of its own."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._moved: dict[str, tuple[int, float]] = {}

    def observe(self, now_s: float, gauges: Mapping[str, Gauge]) -> list[str]:
        """Take a look.

        Args:
            now_s: monotonic seconds.
            gauges: what there is to watch now, by name; what is missing is forgotten.

        Returns:
            The names of those that stall.
        """
        before, self._moved = self._moved, {}
        for name, gauge in gauges.items():
            position, since = before.get(name, (gauge.position, now_s))
            moved = gauge.behind <= 0 or gauge.position != position
            self._moved[name] = (gauge.position, now_s if moved else since)
        return [name for name, (_, since) in self._moved.items() if now_s - since >= self._limit_s]


class Lease:
    """Whether this process was awake all the time, so that the group can still believe it to be a member.

    A process that was stopped for longer than the group's session has lost its partitions without knowing.
    """

    def __init__(self, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = limit_s
        self._clock = clock
        self._seen_s = clock()

    def renew(self) -> None:
        """Say that the process is awake.

        Raises:
            TrustError: it was not, for too long.
        """
        self.check()
        self._seen_s = self._clock()

    def check(self) -> None:
        """Look before writing.

        Raises:
            TrustError: the process was stopped for longer than the group waits for it.
        """
        away_s = self._clock() - self._seen_s
        if away_s > self._limit_s:
            raise TrustError(
                f"The processor was stopped for {away_s:.0f} s: it starts again as a new member."
            )


class Watchdog(threading.Thread):
    """Looks at the gauges again and again, and ends the process by itself: nobody else may be able to."""

    def __init__(
        self,
        limit_s: float,
        lease: Lease,
        read: Callable[[float], Mapping[str, Gauge]],
        tell: Callable[[Mapping[str, Gauge]], None] = lambda gauges: None,
    ) -> None:
        """Prepare it.

        Args:
            limit_s: how long something may be behind without progress.
            lease: renewed with every look.
            read: the gauges, within so many seconds; an error counts as something behind that does not move.
            tell: is given the gauges whenever they could be read.
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
                self._end(f"No progress on {names}: the processor ends, to be started again.", EXIT_STALLED)
                return

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()

    def _gauges(self) -> Mapping[str, Gauge]:
        try:
            self._latest = self._read(self._period_s)
        except TrustError:
            raise
        except WorkerStops:  # the process is about to end; one that does not is ended like any that stalls
            return {**self._latest, "the end of the process": Gauge(position=0, behind=1)}
        except Exception as error:  # whatever keeps it from looking, lag cannot be ruled out
            logger.info("the lag is not known: %r", error)
            return {**self._latest, "the lag": Gauge(position=0, behind=1)}
        self._tell(self._latest)
        return self._latest

    def _end(self, message: str, code: int) -> None:
        if self._ended.is_set():
            return
        # The cause comes last: whoever asks why the process ended reads the end of its log.
        faulthandler.dump_traceback()
        logger.critical(message)
        logging.shutdown()
        os._exit(code)
