"""The processes of the installation, on any machine, by their latest heartbeats, and the faults that follow.

Ages count from the arrival of a heartbeat here: only this process's own clock is used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vitals.heartbeat import READY, SILENT, SILENT_AFTER_S, STOPPING, Heartbeat, observed_state

DECIDER, PROJECTOR = "decider", "projector"
# After this long without a heartbeat, a process is treated as gone for good.
FORGET_AFTER_S = 600.0
# Anyone who can write to the topic can invent processes.
PROCESSES_MAX = 1_000


class ProcessHealth(NamedTuple):
    """A process by its last heartbeat, and the heartbeat's age."""

    heartbeat: Heartbeat
    age_s: float

    @property
    def origin(self) -> str:
        """Its name and machine, as sentences about it begin."""
        return f"{self.heartbeat.name} on {self.heartbeat.host}"

    @property
    def state(self) -> str:
        """Its present state."""
        return observed_state(self.heartbeat, self.age_s)

    @property
    def is_working(self) -> bool:
        """True if a recent heartbeat says that nothing keeps it from its work."""
        return self.state == READY

    def fault(self) -> str:
        """Return its faults as a sentence; empty if there are none."""
        if self.heartbeat.state == STOPPING:
            return "; ".join(filter(None, (f"{self.origin}: it ended by an error", self.heartbeat.disk)))
        if self.state == SILENT:
            return f"{self.origin} has been silent for {self.age_s:.1f} s"
        problems = self.heartbeat.problems()
        return f"{self.origin}: {'; '.join(problems)}" if problems else ""


class Finding(NamedTuple):
    """The faults that keep the installation from deciding, and its other faults."""

    problems: list[str]
    warnings: list[str]


@dataclass(slots=True)
class LatestHeartbeats:
    """The last heartbeat of each process. A process that reports its end is dropped, unless an error ended it."""

    clock: Callable[[], float] = time.monotonic
    _last: dict[str, tuple[Heartbeat, float]] = field(default_factory=dict, init=False)
    _any_at: float | None = field(default=None, init=False)

    def begin(self) -> None:
        """Note that the heartbeats are read from now on: before, their silence means nothing."""
        if self._any_at is None:
            self._any_at = self.clock()

    def record(self, heartbeat: Heartbeat) -> None:
        """Take in a heartbeat."""
        self._any_at = self.clock()
        self._last.pop(heartbeat.key, None)
        if heartbeat.state != STOPPING or heartbeat.reason:
            self._last[heartbeat.key] = heartbeat, self._any_at
        while len(self._last) > PROCESSES_MAX:
            del self._last[next(iter(self._last))]

    @property
    def silence_s(self) -> float:
        """The time since the last heartbeat of any process, including this one; 0 before they are read."""
        return 0.0 if self._any_at is None else self.clock() - self._any_at

    def processes(self) -> list[ProcessHealth]:
        """Return every process with a heartbeat that is not too old, by role and name.

        A process counts as silent only while others are heard of: if none is, it is Kafka that does not answer.
        """
        now = self.clock()
        any_at = now if self._any_at is None else self._any_at
        self._last = {key: last for key, last in self._last.items() if now - last[1] <= FORGET_AFTER_S}
        found = [ProcessHealth(heartbeat, any_at - at) for heartbeat, at in self._last.values()]
        return sorted(found, key=lambda process: process.heartbeat.key)

    def shown(self) -> list[ProcessHealth]:
        """As `processes`, with ages that count until now, also while no heartbeat of any process arrives."""
        silence_s = self.silence_s
        return [ProcessHealth(process.heartbeat, process.age_s + silence_s) for process in self.processes()]

    def uncounted_deciders(self, read_through: Sequence[int], claims: Sequence[int]) -> list[str]:
        """Return, as sentences, the working deciders whose claim, and so whose records, do not count here.

        Args:
            read_through: per partition of the executions, the first offset that was not read here.
            claims: per partition, the claim in force.
        """
        return [
            f"{process.origin} writes partition {number} under a claim that does not count here "
            f"(offset {term}): compare keys/deciders.json, keys/signed-from.json and log_signatures of both"
            for process in self.processes()
            if process.heartbeat.role == DECIDER and process.is_working
            for number, term in zip(process.heartbeat.partitions, process.heartbeat.terms, strict=False)
            # A later claim in force belongs to another decider: this one has not yet noticed that it was deposed.
            if number < min(len(claims), len(read_through)) and claims[number] < term < read_through[number]
        ]

    def examine(self, partitions: int, kafka_age_s: float | None) -> Finding:
        """Return the faults of the installation.

        Args:
            partitions: the number of partitions of the executions; each needs a decider.
            kafka_age_s: the time since Kafka last answered this process; None if it never did.
        """
        if kafka_age_s is None:
            return Finding(["Kafka has not answered yet"], [])
        if (age_s := max(kafka_age_s, self.silence_s)) > SILENT_AFTER_S:
            # No heartbeat can arrive then, so to report the processes as silent would be misleading.
            return Finding([f"Kafka has not answered for {age_s:.1f} s"], [])
        if self._any_at is None:
            return Finding(["the heartbeats of the other processes are not read yet"], [])
        processes = self.processes()
        problems = [*_deciders(processes, partitions), *_projectors(processes)]
        faults = [fault for process in processes if (fault := process.fault())]
        heartbeats = [(process, process.heartbeat) for process in processes]
        # Several processes of one machine write to the same disk.
        disks = [f"{heartbeat.host}: {heartbeat.disk}" for _, heartbeat in heartbeats if heartbeat.disk]
        clocks = [
            f"{process.origin}: {heartbeat.clock}" for process, heartbeat in heartbeats if heartbeat.clock
        ]
        warnings = dict.fromkeys((*faults, *disks, *clocks))
        return Finding(problems, [warning for warning in warnings if warning not in problems])


def _deciders(processes: Sequence[ProcessHealth], partitions: int) -> list[str]:
    deciders = [process for process in processes if process.heartbeat.role == DECIDER]
    written = {
        number for process in deciders if process.is_working for number in process.heartbeat.partitions
    }
    missing = sorted(set(range(partitions)) - written)
    if not missing:
        return []
    if not deciders:
        return ["no decider has sent a heartbeat"]
    which = "any partition" if len(missing) == partitions else f"partitions {', '.join(map(str, missing))}"
    return [
        f"no decider writes {which}",
        *(fault for process in deciders if (fault := process.fault())),
    ]


def _projectors(processes: Sequence[ProcessHealth]) -> list[str]:
    projectors = [process for process in processes if process.heartbeat.role == PROJECTOR]
    if any(process.is_working for process in projectors):
        return []
    faults = [fault for process in projectors if (fault := process.fault())]
    return faults or ["no projector has sent a heartbeat"]
