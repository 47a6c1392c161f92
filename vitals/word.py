"""A heartbeat: what a process says of itself every second, in its status file and in the log."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from vitals.status_file import STALLED

STARTING, READY, STOPPING = "starting", "ready", "stopping"
# Said of a process by others: its heartbeats have stopped, or tell of something that keeps it from its work.
SILENT = "silent"

BEAT_S = 1.0
# Whoever was not heard for so long is taken to be frozen, dead or cut off. Case 39 owes that word within 5 s.
SILENT_AFTER_S = 3.5
# So long may a role be behind without any progress before it no longer counts as ready.
STALLED_AFTER_S = 10.0
# No process is called hung before this: a long recovery or transaction keeps a loop busy, too.
HUNG_AFTER_S = 60.0


class WordUnreadable(ValueError):
    """Bytes that are no heartbeat."""


@dataclass(frozen=True, slots=True)
class Word:
    """What one process says.

    Attributes:
        role: the name of its role.
        name: Its worker id, the role's name by default.
        host: The machine's name.
        pid: Its process id there.
        state: starting, ready or stopping.
        address: Where it is asked: the gateway's address, the other roles' probe.
        at: When it said so, RFC 3339.
        lag_records: Records that it has still to read; None where it does not know yet.
        stalled_ms: For how long it has been behind without progress.
        loop_age_ms: How long its own work has not given a sign of life.
        kafka_age_ms: How long ago Kafka last acknowledged a heartbeat; None before the first.
        partitions: Of the executions, those that a decider writes.
        terms: The claim under which it writes each of them, in their order.
        reason: What hinders it, in its own words, although it runs and is connected; of one that stops, which
            error ended it.
        disk: Which of its disks has (nearly) no room left.
        clock: How far its machine's clock is off Kafka's, where that is too far and keeps it from nothing else.
    """

    role: str
    name: str
    host: str
    pid: int
    state: str
    address: str | None = None
    at: str = ""
    lag_records: int | None = None
    stalled_ms: int = 0
    loop_age_ms: int = 0
    kafka_age_ms: int | None = None
    partitions: tuple[int, ...] = ()
    terms: tuple[int, ...] = ()
    reason: str = ""
    disk: str = ""
    clock: str = ""

    @property
    def key(self) -> str:
        """What tells its process from others, before and after a restart."""
        return f"{self.role}/{self.name}@{self.host}"

    def problems(self) -> list[str]:
        """What keeps the process from doing its work, by its own word; empty when nothing does."""
        found = []
        if self.state != READY:
            found.append(f"it is {self.state}")
        if self.reason:
            found.append(self.reason)
        if self.loop_age_ms > SILENT_AFTER_S * 1000:
            found.append(f"its work has stood still for {self.loop_age_ms / 1000:.1f} s")
        if self.kafka_age_ms is not None and self.kafka_age_ms > SILENT_AFTER_S * 1000:
            found.append(f"Kafka has not answered for {self.kafka_age_ms / 1000:.1f} s")
        if self.stalled_ms > STALLED_AFTER_S * 1000:
            found.append(
                f"it is {self.lag_records} records behind and has not moved for {self.stalled_ms // 1000} s"
            )
        return found


def standing(word: Word, age_s: float) -> str:
    """The state of a process whose last heartbeat came so many seconds ago."""
    if age_s > SILENT_AFTER_S and word.state != STOPPING:
        return SILENT
    return STALLED if word.state == READY and word.problems() else word.state


def encode(word: Word) -> bytes:
    """A heartbeat as the record's value: JSON."""
    return json.dumps(asdict(word)).encode()


def decode(value: bytes | None) -> Word:
    """A heartbeat from a record's value; fields of a newer version are passed over.

    Raises:
        WordUnreadable: it is none.
    """
    try:
        return word_of(json.loads(value or b""))
    except (ValueError, RecursionError) as error:
        raise WordUnreadable(str(error)) from error


def word_of(read: Any) -> Word:
    """A heartbeat from its JSON; errors as `decode`."""
    try:
        known = {field.name: read[field.name] for field in fields(Word) if field.name in read}
        several = {name: tuple(known.get(name, ())) for name in ("partitions", "terms")}
        word = Word(**(known | several))
    except TypeError as error:
        raise WordUnreadable(str(error)) from error
    if not _is_well_typed(word):
        raise WordUnreadable("a field has another type")
    return word


def _is_well_typed(word: Word) -> bool:
    texts = (word.role, word.name, word.host, word.state, word.at, word.reason, word.disk, word.clock)
    numbers = (word.pid, word.stalled_ms, word.loop_age_ms, *word.partitions, *word.terms)
    maybe = (word.lag_records, word.kafka_age_ms)
    return (
        all(isinstance(text, str) for text in texts)
        and (word.address is None or isinstance(word.address, str))
        and all(type(number) is int for number in numbers)
        and all(number is None or type(number) is int for number in maybe)
    )
