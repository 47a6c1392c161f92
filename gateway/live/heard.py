"""The processes of the installation, on any machine, by their latest heartbeats, and the faults that follow.

Ages count from the arrival of a heartbeat here: only this process's own clock is used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vitals.word import READY, SILENT, SILENT_AFTER_S, STOPPING, Word, standing

DECIDER, PROJECTOR = "decider", "projector"
# After this long without a heartbeat, a process is treated as gone for good.
FORGET_AFTER_S = 600.0
# Anyone who can write to the topic can invent processes.
HEARD_MAX = 1_000


class Part(NamedTuple):
    """A process by its last heartbeat, and the heartbeat's age."""

    word: Word
    age_s: float

    @property
    def state(self) -> str:
        """Its present state."""
        return standing(self.word, self.age_s)

    @property
    def does_its_work(self) -> bool:
        """True if a recent heartbeat says that nothing keeps it from its work."""
        return self.state == READY

    def complaint(self) -> str:
        """Return its faults as a sentence; empty if there are none."""
        who = f"{self.word.name} on {self.word.host}"
        if self.word.state == STOPPING:
            return "; ".join(filter(None, (f"{who}: it ended by an error", self.word.disk)))
        if self.state == SILENT:
            return f"{who} has been silent for {self.age_s:.1f} s"
        problems = self.word.problems()
        return f"{who}: {'; '.join(problems)}" if problems else ""


class Finding(NamedTuple):
    """The faults that keep the installation from deciding, and its other faults."""

    problems: list[str]
    warnings: list[str]


@dataclass(slots=True)
class Heard:
    """The last heartbeat of each process. A process that reports its end is dropped, unless an error ended it."""

    clock: Callable[[], float] = time.monotonic
    since: float = field(init=False)
    _last: dict[str, tuple[Word, float]] = field(default_factory=dict, init=False)
    _any_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.since = self._any_at = self.clock()

    def take(self, word: Word) -> None:
        """Take in a heartbeat."""
        self._any_at = self.clock()
        self._last.pop(word.key, None)
        if word.state != STOPPING or word.reason:
            self._last[word.key] = word, self._any_at
        while len(self._last) > HEARD_MAX:
            del self._last[next(iter(self._last))]

    @property
    def silence_s(self) -> float:
        """The time since the last heartbeat of any process, including this one."""
        return self.clock() - self._any_at

    def parts(self) -> list[Part]:
        """Return every process with a heartbeat that is not too old, by role and name.

        A process counts as silent only while others are heard: if none is, it is Kafka that does not answer.
        """
        now = self.clock()
        self._last = {key: told for key, told in self._last.items() if now - told[1] <= FORGET_AFTER_S}
        found = [Part(word, self._any_at - at) for word, at in self._last.values()]
        return sorted(found, key=lambda part: part.word.key)

    def shown(self) -> list[Part]:
        """As `parts`, with ages that count until now, also while no heartbeat of any process arrives."""
        silence_s = self.silence_s
        return [Part(part.word, part.age_s + silence_s) for part in self.parts()]

    def strangers(self, read_through: Sequence[int], claims: Sequence[int]) -> list[str]:
        """Return, as sentences, the working deciders whose claim, and so whose records, do not count here.

        Args:
            read_through: per partition of the executions, the first offset that was not read here.
            claims: per partition, the claim in force.
        """
        return [
            f"{part.word.name} on {part.word.host} writes partition {number} under a claim that does not count here "
            f"(offset {term}): compare keys/deciders.json, keys/signed-from.json and log_signatures of both"
            for part in self.parts()
            if part.word.role == DECIDER and part.does_its_work
            for number, term in zip(part.word.partitions, part.word.terms, strict=False)
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
        parts = self.parts()
        problems = [*_deciders(parts, partitions), *_projectors(parts)]
        told = [complaint for part in parts if (complaint := part.complaint())]
        # Several processes of one machine write to the same disk.
        disks = [f"{part.word.host}: {part.word.disk}" for part in parts if part.word.disk]
        clocks = [
            f"{part.word.name} on {part.word.host}: {part.word.clock}" for part in parts if part.word.clock
        ]
        warnings = dict.fromkeys((*told, *disks, *clocks))
        return Finding(problems, [warning for warning in warnings if warning not in problems])


def _deciders(parts: Sequence[Part], partitions: int) -> list[str]:
    deciders = [part for part in parts if part.word.role == DECIDER]
    written = {number for part in deciders if part.does_its_work for number in part.word.partitions}
    missing = sorted(set(range(partitions)) - written)
    if not missing:
        return []
    if not deciders:
        return ["no decider has sent a heartbeat"]
    which = "any partition" if len(missing) == partitions else f"partitions {', '.join(map(str, missing))}"
    return [
        f"no decider writes {which}",
        *(complaint for part in deciders if (complaint := part.complaint())),
    ]


def _projectors(parts: Sequence[Part]) -> list[str]:
    projectors = [part for part in parts if part.word.role == PROJECTOR]
    if any(part.does_its_work for part in projectors):
        return []
    complaints = [complaint for part in projectors if (complaint := part.complaint())]
    return complaints or ["no projector has sent a heartbeat"]
