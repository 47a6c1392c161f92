"""An export: compare the folder with the log, then read every partition on to the end that it has now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from log.completeness import check_begun
from log.places import TopicPartition
from log.port import Log
from ops.export.errors import OtherLogError, OutputUnusableError, ShorterLogError
from ops.export.folder import Folder
from ops.export.reading import Round, Stretch, Work, rounds
from ops.export.rows import Counts
from ops.export.state import Position
from projections.batching import record_id_of
from schemas.audit import TopicRole
from schemas.topics import Topics

Told = Callable[[int, int], None]


@dataclass(slots=True)
class Outcome:
    """What one export did: what became of the records that it read, and how many files it added."""

    counts: Counts = field(default_factory=Counts)
    files: int = 0


@dataclass(slots=True)
class Growth:
    """The folder while rounds are added to it.

    Attributes:
        folder: the opened folder.
        total: the number of offsets to read.
        told: called with the number of offsets that were read, and the total.
        outcome: what was added so far.
    """

    folder: Folder
    total: int
    told: Told
    outcome: Outcome = field(default_factory=Outcome)
    done: int = 0

    def moved(self, offsets: int) -> None:
        """Note that so many more offsets were read."""
        self.done += offsets
        self.told(self.done, self.total)

    def take(self, ended: Round) -> None:
        """Commit a round.

        Raises:
            OutputUnusableError: a file cannot be written.
        """
        self.folder.commit(*ended)
        self.outcome.files += len(ended.moves)
        self.outcome.counts.add(ended.counts)


async def plan(log: Log, folder: Folder) -> list[Stretch]:
    """What the log has and the folder has not, once the folder is known to be of this log.

    Raises:
        ExportRefusedError: the folder was made from another log, or from more of it.
        LogError: the log cannot be read, or not from its beginning; see its subclasses.
    """
    await check_begun(log, *log.topics.facts)
    roles = _roles(log.topics)
    if others := folder.state.topics.keys() - roles.keys():
        raise OtherLogError(folder.root, min(others), "is not one of its topics")
    return [stretch for topic, role in roles.items() for stretch in await _of_topic(log, folder, topic, role)]


async def export(log: Log, work: Work, stretches: Sequence[Stretch], growth: Growth) -> None:
    """Add stretches to the folder, in this process.

    Raises:
        OutputUnusableError: a file cannot be written.
        LogError: the log cannot be read; see its subclasses.
    """
    try:
        for stretch in stretches:
            async with aclosing(rounds(log, work, stretch, growth.moved)) as ended:
                async for one in ended:
                    growth.take(one)
    except OSError as error:
        raise OutputUnusableError(growth.folder.root, error) from error


def _roles(topics: Topics) -> dict[str, TopicRole]:
    return {topics.executions: "executions", topics.definitions: "definitions"}


async def _of_topic(log: Log, folder: Folder, topic: str, role: TopicRole) -> list[Stretch]:
    topic_id = await log.topic_id(topic)
    state = folder.topic(topic, topic_id)
    if state.topic_id != topic_id:
        raise OtherLogError(folder.root, topic, "was recreated since")
    found = []
    for partition in range(await log.partition_count(topic)):
        tp, position = TopicPartition(topic, partition), state.position(partition)
        end = (await log.bounds(tp)).end
        if position.next_offset > end:
            raise ShorterLogError(folder.root, tp, end, position.next_offset)
        await _check_last(log, folder, tp, position)
        found.append(Stretch(tp, role, position, end))
    return found


async def _check_last(log: Log, folder: Folder, tp: TopicPartition, position: Position) -> None:
    """Check that the last record that was exported is still the one before the position."""
    last = position.next_offset - 1
    if last < 0:
        return
    async with aclosing(log.read(tp, last, last + 1)) as chunks:
        ids = [record_id_of(raw) async for chunk in chunks for raw in chunk]
    if ids != [position.record_id]:
        raise OtherLogError(folder.root, f"{tp}@{last}", "is another record")
