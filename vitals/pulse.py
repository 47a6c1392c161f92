"""What a process knows of itself: its state, how far its work has come, and who has given a sign of life when.

Its own loop writes here, its heart and its probe read, each from a thread of its own: every attribute is replaced as
a whole.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping

from schemas.headers import rfc3339
from vitals.disks import Disk, disks_of, room_on
from vitals.word import STARTING, Word

PROJECTOR = "projector"


class Pulse:
    """One process's state, moved by its own work."""

    def __init__(self, role: str, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin as starting.

        Args:
            role: the name of its role.
            name: the worker id.
            clock: monotonic seconds.
        """
        self.role = role
        self.name = name
        self.host = socket.gethostname()
        self.state = STARTING
        self.address: str | None = None
        self.partitions: tuple[int, ...] = ()
        self.terms: tuple[int, ...] = ()
        self.reason = ""
        self.clock = ""
        self.disks: tuple[Disk, ...] = ()
        self._clock = clock
        self._touched_at = clock()
        self._acknowledged_at: float | None = None
        self._position: int | None = None
        self._behind: int | None = None
        self._moved_at = clock()

    def tell(self, state: str, address: str | None = None) -> None:
        """Say how the process is from now on; an address, once told, stays."""
        self.state = state
        self.address = address or self.address
        self.touch()

    def touch(self) -> None:
        """Say that the work goes on. Called by what does it, at least every second."""
        self._touched_at = self._clock()

    def progress(self, position: int, behind: int) -> None:
        """Say how far the work has come.

        Args:
            position: moves with every progress.
            behind: records that are left; 0 when there is nothing to do.
        """
        now = self._clock()
        if behind <= 0 or position != self._position:
            self._moved_at = now
        self._position, self._behind = position, behind
        self._touched_at = now

    def acknowledged(self) -> None:
        """Kafka has taken a heartbeat."""
        self._acknowledged_at = self._clock()

    def word(self) -> Word:
        """The heartbeat of this moment."""
        now = self._clock()
        answered = self._acknowledged_at
        room = room_on(self.disks)
        # While it starts, its own loop is not asked for signs: reading a long log may keep it busy.
        loop_age_s = 0.0 if self.state == STARTING else now - self._touched_at
        return Word(
            role=self.role,
            name=self.name,
            host=self.host,
            pid=os.getpid(),
            state=self.state,
            address=self.address,
            at=rfc3339(time.time_ns() // 1_000_000),
            lag_records=None if self._behind is None else max(0, self._behind),
            stalled_ms=int((now - self._moved_at) * 1000) if self._behind else 0,
            loop_age_ms=int(loop_age_s * 1000),
            kafka_age_ms=None if answered is None else int((now - answered) * 1000),
            partitions=self.partitions,
            terms=self.terms,
            reason="; ".join(filter(None, (room.hindrance, self.reason))),
            disk=room.warning,
            clock=self.clock,
        )


def pulse_of(settings: Mapping[str, str], role: str) -> Pulse:
    """The pulse of the process that a role's settings start."""
    pulse = Pulse(role, settings.get("worker_id") or role)
    pulse.disks = disks_of(settings, writes_views=role == PROJECTOR)
    return pulse
