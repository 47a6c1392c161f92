"""The projector: follows the log and keeps the views current.

1. Find the view's position, and check that the log is the one it was read from, and the one that was signed.
2. Read from there; fold; write rows and positions in one transaction; sign what has grown. Meanwhile check that the
   log still has its beginning: the records that follow do not show that facts behind the view were deleted.
3. When the view was swapped for a rebuilt one, open that one and start again at 1.

It keeps no state outside the database and the log: any failure ends the process, and the next process continues.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from log.errors import LogRefused, LogUnreachable, TopicMissing
from log.kafka.follower import Follower
from log.places import TopicPartition
from projections.audit.heads import HeadSigner
from projections.audit.trees import Trees
from projections.batching import Batcher, Chunk
from projections.cache import RowCache
from projections.log_position import LogPosition, check_begun, find_log_position, first_position
from projections.meters import UNSEEN, Meters
from projections.slices import slices
from projections.spans import ProjectorSpans
from projections.store.port import Batch, Position, RowStore, ViewReplaced, ViewStore
from schemas.event_signatures import LogSignatures
from schemas.record import RawRecord
from schemas.topics import Topics
from vitals import tracing

logger = logging.getLogger(__name__)

BATCH_RECORDS = 2_000
SAY_EVERY_S = 10.0
LOOK_EVERY_S = 10.0

Tell = Callable[[str], None]


@dataclass(slots=True)
class Writer:
    """Folds records into one view, partition by partition."""

    store: RowStore
    positions: dict[TopicPartition, Position]
    batcher: Batcher
    batch_records: int = BATCH_RECORDS
    wrote: Callable[[Batch], None] = lambda batch: None
    meters: Meters = UNSEEN

    def write(self, polled: Sequence[tuple[TopicPartition, Sequence[RawRecord]]]) -> None:
        """Write the next records of some partitions, in one transaction or more."""
        for round_ in _rounds(polled, self.batch_records):
            chunks = [Chunk(self._position(at, records), records) for at, records in round_]
            with self.meters.folding(sum(len(chunk.records) for chunk in chunks)):
                batch = self.batcher.batch(chunks)
            with self.meters.writing():
                self.store.apply(batch)
            self.batcher.written()
            self.wrote(batch)
            for move in batch.moves:
                self.positions[move.after.tp] = move.after

    def _position(self, at: TopicPartition, records: Sequence[RawRecord]) -> Position:
        return self.positions.get(at) or first_position(at, records[0])


def new_writer(
    store: RowStore,
    topics: Topics,
    positions: Mapping[TopicPartition, Position],
    batch_records: int = BATCH_RECORDS,
    signatures: LogSignatures | None = None,
) -> Writer:
    """Returns a writer that continues at the view's positions."""
    return Writer(
        store, dict(positions), Batcher(topics, RowCache(store), Trees(store), signatures), batch_records
    )


@dataclass(slots=True)
class Projector:
    """Runs until `stop`.

    Attributes:
        tail: a connected follower.
        open_store: opens the live view; called again when that view was swapped.
        topics: the topics of the installation.
        tell: called with the state (`starting`, `ready`).
        signatures: verifies which records a decider signed; None if nothing is signed.
        heads: checks and signs the audit trees' heads; None signs none.
        meters: the metrics.
    """

    tail: Follower
    open_store: Callable[[], ViewStore]
    topics: Topics
    tell: Tell
    heads: HeadSigner | None = None
    signatures: LogSignatures | None = None
    meters: Meters = UNSEEN
    stopping: bool = False

    def stop(self) -> None:
        """Stop after the batch under way."""
        self.stopping = True

    def progress(self) -> tuple[int, int]:
        """How far the views have read, as a sum of offsets, and how many records of the log are still to be read."""
        return self.tail.progress()

    async def run(self) -> None:
        """Follow the log.

        Raises:
            LogError: the log can no longer be read, or is not the one that was signed (`HeadsDisagree`).
            ViewError: the view cannot be written.
            HeadsUnusable: a head cannot be stored.
        """
        while not self.stopping:
            store = await asyncio.to_thread(self.open_store)
            try:
                await self._follow(store)
            except ViewReplaced as error:
                logger.info("%s", error)
            finally:
                store.close()

    async def _follow(self, store: ViewStore) -> None:
        log_position = await find_log_position(self.tail, store, self.topics)
        writer = new_writer(store, self.topics, log_position.positions, signatures=self.signatures)
        writer.meters = self.meters
        if tracing.spans is not None:
            writer.batcher.spans = ProjectorSpans(tracing.spans, self.topics.executions)
        if self.heads is not None:
            self.heads.begin(store)
            writer.wrote = self.heads.wrote
        logger.info("the view is %d records behind", log_position.behind())
        self.tail.stand_at(log_position.offsets)
        progress = _Progress(log_position, self.tell)
        looking = asyncio.create_task(self._look_at_beginnings(log_position))
        try:
            while not self.stopping and not looking.done():
                if polled := await self.tail.poll_on():
                    writer.write(polled)
                    progress.moved(writer.positions)
                if self.heads is not None:
                    self.heads.turn(store, is_caught_up=progress.is_ready)
            if looking.done():
                looking.result()
        finally:
            looking.cancel()
            await asyncio.wait({looking})

    async def _look_at_beginnings(self, log_position: LogPosition) -> None:
        """Check until facts are found deleted; errors as `check_begun`. If the log does not answer, try again."""
        facts = [at for at in log_position.offsets if at.topic in self.topics.facts]
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            with suppress(LogUnreachable, LogRefused, TopicMissing):
                check_begun(self.topics, await self.tail.bounds(facts))


class _Progress:
    """Reports when the view has reached the ends that the log had at start, and until then how far behind it is."""

    def __init__(self, log_position: LogPosition, tell: Tell) -> None:
        self._ends = {at: end for at, end in log_position.ends.items() if end > log_position.offsets[at]}
        self._tell = tell
        self._next_at = 0.0
        self._state = "ready" if not self._ends else "starting"
        tell(self._state)

    @property
    def is_ready(self) -> bool:
        return self._state == "ready"

    def moved(self, positions: dict[TopicPartition, Position]) -> None:
        if self._state == "ready":
            return
        behind = sum(max(0, end - _offset(positions, at)) for at, end in self._ends.items())
        now = asyncio.get_running_loop().time()
        if behind == 0:
            self._state = "ready"
        elif now < self._next_at:
            return
        self._next_at = now + SAY_EVERY_S
        logger.info("the view is %d records behind", behind)
        self._tell(self._state)


def _offset(positions: dict[TopicPartition, Position], at: TopicPartition) -> int:
    return positions[at].next_offset if at in positions else 0


def _rounds(
    polled: Sequence[tuple[TopicPartition, Sequence[RawRecord]]], size: int
) -> list[list[tuple[TopicPartition, Sequence[RawRecord]]]]:
    """Rounds of at most about `size` records, each with a piece of every partition that has records left."""
    if sum(len(records) for _, records in polled) <= size:
        return [list(polled)]
    pieces = [
        [(at, piece) for piece in slices(records, max(1, size // len(polled)))] for at, records in polled
    ]
    longest = max(map(len, pieces))
    return [[cut[number] for cut in pieces if number < len(cut)] for number in range(longest)]
