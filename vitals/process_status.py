"""A process's status: its state, the progress of its work, and the times of its last signs of life.

The process's own loop writes it; its heartbeat sender and its probe read it in threads of their own. So every
attribute is replaced as a whole.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping

from schemas.headers import rfc3339
from vitals.disks import Disk, disks_of, room_on
from vitals.heartbeat import STARTING, Heartbeat, text_of

PROJECTOR = "projector"


class ProcessStatus:
    """The status of one process, updated by its own work."""

    def __init__(self, role: str, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin in the state starting.

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
        self.probe: str | None = None
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

    def set_state(self, state: str, address: str | None = None) -> None:
        """Set the state; an address, once set, stays unless another is given."""
        self.state = state
        self.address = address or self.address
        self.touch()

    def touch(self) -> None:
        """Record a sign of life. The working loop calls this at least every second."""
        self._touched_at = self._clock()

    def progress(self, position: int, behind: int | None) -> None:
        """Record the progress of the work.

        Args:
            position: a number that changes with every progress.
            behind: the number of remaining records; 0 if there is nothing to do, None while it is not known.
        """
        now = self._clock()
        if behind is None or behind <= 0 or position != self._position:
            self._moved_at = now
        self._position, self._behind = position, behind
        self._touched_at = now

    def acknowledged(self) -> None:
        """Record that Kafka has acknowledged a heartbeat."""
        self._acknowledged_at = self._clock()

    def heartbeat(self) -> Heartbeat:
        """The heartbeat of this moment."""
        room = room_on(self.disks)
        moved, touched, answered = self._moved_at, self._touched_at, self._acknowledged_at
        # After the times that it is compared with: the loop replaces them meanwhile, and no age is below 0.
        now = self._clock()
        # While the process starts, its loop need not give signs of life: reading a long log can keep it busy.
        loop_age_s = 0.0 if self.state == STARTING else now - touched
        return Heartbeat(
            role=self.role,
            name=text_of(self.name),
            host=self.host,
            pid=os.getpid(),
            state=self.state,
            address=self.address,
            at=rfc3339(time.time_ns() // 1_000_000),
            lag_records=None if self._behind is None else max(0, self._behind),
            stalled_ms=int((now - moved) * 1000) if self._behind else 0,
            loop_age_ms=int(loop_age_s * 1000),
            kafka_age_ms=None if answered is None else int((now - answered) * 1000),
            partitions=self.partitions,
            terms=self.terms,
            reason=text_of("; ".join(filter(None, (room.hindrance, self.reason)))),
            disk=text_of(room.warning),
            clock=text_of(self.clock),
            probe=self.probe,
        )


def process_status_of(settings: Mapping[str, str], role: str) -> ProcessStatus:
    """The status of the process that a role's settings start."""
    status = ProcessStatus(role, settings.get("worker_id") or role)
    status.disks = disks_of(settings, writes_views=role == PROJECTOR)
    return status
