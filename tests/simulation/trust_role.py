"""The trust role of a simulated world: it ends between any two steps of a round, and continues from its topic.

The rounds are those of `services.processors.trust`, without faust; what drops, folds and writes records is production
code. In the end its parts must be those of a count from the first record, of the log without the planted calls.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from log.memory.log import MemoryLog
from log.places import TopicPartition
from ops.checker import Violation
from schemas.events.calls import ToolCallProposed
from schemas.headers import read_event
from schemas.message import Message
from schemas.record import RawRecord, UnreadableRecord
from schemas.trust import AnyPart, TrustRecord, decode, trust_record
from services.processors.fold import PartitionFold, group_by_partition, is_unused
from services.processors.record_filter import RecordFilter

Records = Mapping[TopicPartition, Sequence[RawRecord]]
PAUSE_S = (0.1, 3.0)
# In one of so many rounds it ends before the round does.
ENDS_EVERY = 4
# After which steps of a round it can end.
STEPS = ("folded", "some parts written", "parts written", "some checkpoints written")


class Resumed(NamedTuple):
    """Where it continued a partition: what was counted by then, and from where it was read again."""

    partition: int
    through: int
    start: int


@dataclass
class TrustRole:
    """Counts the partitions of one world, in one process after the other."""

    log: MemoryLog
    partitions: int
    rng: random.Random
    topic_id: str = ""
    # The trust topic, compacted.
    topic: dict[bytes, bytes] = field(default_factory=dict)
    folds: dict[int, PartitionFold] = field(default_factory=dict)
    resumed: list[Resumed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.filter = RecordFilter(is_unused, self._whole_through)

    async def run(self) -> None:
        """Count in rounds, for ever."""
        self.topic_id = await self.log.topic_id(self.log.topics.executions)
        self._load()
        while True:
            await asyncio.sleep(self.rng.uniform(*PAUSE_S))
            ends = self.rng.choice(STEPS) if self.rng.randrange(ENDS_EVERY) == 0 else ""
            self._round(ends)
            if ends:
                self._load()

    def check(self, records: Records, happened: Counter[str]) -> list[Violation]:
        """Count the rest, and compare.

        Args:
            records: the log at rest.
            happened: is told what it went through.
        """
        found = []
        for number in range(self.partitions):
            raws = records[TopicPartition(self.log.topics.executions, number)]
            self._fold(number, raws[self.folds[number].position :])
            planted = Planted.of(raws)
            expected = self._whole(number, planted.others)
            if self.folds[number].parts != expected:
                what = (
                    "trust that was counted with interruptions is not that of the log without planted calls"
                )
                found.append(Violation("I6", f"trust of partition {number}", what))
            resumed = [one for one in self.resumed if one.partition == number]
            happened["trust_resumed"] += len(resumed)
            happened["trust_resumed_amid_planted"] += sum(map(planted.is_amid, resumed))
        return found

    def _whole(self, number: int, raws: Sequence[RawRecord]) -> list[AnyPart]:
        fold = PartitionFold(number, self.topic_id)
        for place, raw in enumerate(raws):
            fold.apply(raw, 0 if place == 0 else None)
        return fold.parts

    def _load(self) -> None:
        """A new process: everything that it knows is in the topic."""
        checkpoints, parts = group_by_partition(map(decode, self.topic.values()))
        self.filter.forget()
        self.folds = {
            number: PartitionFold(number, self.topic_id, checkpoints.get(number), parts.get(number, ()))
            for number in range(self.partitions)
        }
        self.resumed += [
            Resumed(number, checkpoint.through_offset, self.folds[number].start)
            for number, checkpoint in checkpoints.items()
        ]

    def _round(self, ends: str) -> None:
        for number in self.folds:
            self._fold(number, self._some_new(number))
        if ends == "folded":
            return
        parts = [part for fold in self.folds.values() for part in fold.take_changes()]
        self._write(self._some(parts) if ends == "some parts written" else parts)
        if ends in ("some parts written", "parts written"):
            return
        closing = [
            checkpoint for fold in self.folds.values() if (checkpoint := fold.checkpoint()) is not None
        ]
        self._write(self._some(closing) if ends == "some checkpoints written" else closing)

    def _some_new(self, number: int) -> list[RawRecord]:
        partition = self.log.partition(TopicPartition(self.log.topics.executions, number))
        position = self.folds[number].position
        # A fetch can end inside of a batch.
        return partition.slice(position, self.rng.randint(position, partition.end))

    def _fold(self, number: int, raws: Sequence[RawRecord]) -> None:
        for raw in self.filter.drop_unused(number, raws):
            self.folds[number].apply(raw, self.filter.first_of(number, raw.offset))

    def _whole_through(self, number: int) -> int | None:
        return self.folds[number].needs_through

    def _some(self, records: Sequence[TrustRecord]) -> list[TrustRecord]:
        return [record for record in records if self.rng.random() < 0.5]

    def _write(self, records: Iterable[TrustRecord]) -> None:
        for record in records:
            written = trust_record(record)
            self.topic[written.key] = written.value


@dataclass
class Planted:
    """The planted calls of one partition, from their proposal to their end; and the records that are not of them."""

    spans: list[tuple[int, int]]
    others: list[RawRecord]

    @classmethod
    def of(cls, raws: Sequence[RawRecord]) -> Planted:
        """Those in the records of a partition, whether or not these count."""
        calls: dict[tuple[bytes, str], list[int]] = {}
        others = []
        for raw in raws:
            body = _body(raw)
            call = raw.key, str(getattr(body, "call_id", ""))
            if isinstance(body, ToolCallProposed) and body.probe is not None:
                calls.setdefault(call, [])
            if call in calls:
                calls[call].append(raw.offset)
            else:
                others.append(raw)
        return cls([(offsets[0], offsets[-1]) for offsets in calls.values()], others)

    def is_amid(self, resumed: Resumed) -> bool:
        """Whether a planted call was read again, and the rest of it came later."""
        return any(resumed.start <= first <= resumed.through < last for first, last in self.spans)


def _body(raw: RawRecord) -> Message | None:
    try:
        return read_event(raw).body
    except UnreadableRecord:
        return None
