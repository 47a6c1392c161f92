"""A worker: the partitions that its group gives it, each with its one writer.

The group only assigns. Two workers that both believe to own a partition are told apart by the log (`claim.py`),
so nothing here has to be quick or exact about who lost what.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from log.errors import (
    AppendFailed,
    ClaimUnknown,
    LogDamaged,
    LogFromNewerVersion,
    LogRefused,
    LogTruncated,
    LogUnreachable,
    TopicMissing,
)
from log.places import TopicPartition
from log.port import Appender, CommandFeed, Log
from schemas.record import RawRecord
from services.runtime.appenders import Appenders
from services.runtime.held_back import HeldBack
from services.runtime.meters import WriterEnd
from services.runtime.writer import Deposed, PartitionWriter

GROUP = "placet-decider"
POLL_MS = 500
CROWDED_POLL_MS = 20
BACKOFF_S = 0.05
BACKOFF_MAX_S = 2.0
FATAL = (ClaimUnknown, TopicMissing, LogTruncated, LogDamaged, LogRefused, LogFromNewerVersion)

logger = logging.getLogger(__name__)

# Builds a writer on a fresh ledger; called anew for every claim.
BuildWriter = Callable[[TopicPartition, Appender, CommandFeed], PartitionWriter]


@dataclass(slots=True)
class Slot:
    """One assigned partition: who writes it now, and the task that keeps somebody writing it."""

    tp: TopicPartition
    writer: PartitionWriter | None = None
    task: "asyncio.Task[None] | None" = None
    paused: bool = False
    stopping: bool = False


@dataclass(slots=True)
class Worker:
    """One member of the decider group.

    Attributes:
        log: where the partitions are.
        worker_id: names this process, and no other, in claims; in the group, too, where `member` is empty.
        build: makes a writer for a commands partition.
        jitter: a number in [0, 1), for back-off.
        member: its name in the group, which no other worker may have.
    """

    log: Log
    worker_id: str
    build: BuildWriter
    jitter: Callable[[], float]
    member: str = ""
    _slots: dict[TopicPartition, Slot] = field(default_factory=dict)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _appenders: Appenders = field(init=False)
    _feed: CommandFeed | None = field(default=None, init=False)
    _held: HeldBack = field(default_factory=HeldBack)
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock)
    # How many writers of this process died of a command that they tried alone, by its offset.
    _died_of: defaultdict[TopicPartition, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def __post_init__(self) -> None:
        self._appenders = Appenders(self.log)

    @property
    def writing(self) -> Sequence[TopicPartition]:
        """The partitions that a writer of this worker serves now."""
        return [tp for tp, slot in self._slots.items() if slot.writer is not None and slot.writer.serving]

    @property
    def settled(self) -> bool:
        """Whether every partition that the group gave has a writer that serves it."""
        return bool(self._slots) and len(self.writing) == len(self._slots)

    @property
    def trouble(self) -> str:
        """Why a writer of this worker decides nothing although it could; empty while none is hindered."""
        writers = (slot.writer for slot in self._slots.values() if slot.writer is not None)
        wrong = next((writer.time.wrong for writer in writers if writer.time.wrong), "")
        held = self._held.trouble(self._feed.held_back() if self._feed is not None else {})
        return "; ".join(filter(None, (wrong, held)))

    def ends(self) -> dict[int, int]:
        """Partition of the executions → one past its last event, of each that a writer of this worker serves now."""
        return {
            tp.partition: slot.writer.ledger.next_offset
            for tp, slot in self._slots.items()
            if tp.topic == self.log.topics.commands and slot.writer is not None and slot.writer.serving
        }

    def terms(self) -> dict[int, int]:
        """Likewise, the claim under which it is written."""
        return {
            tp.partition: slot.writer.ledger.rule.claim
            for tp, slot in self._slots.items()
            if tp.topic == self.log.topics.commands and slot.writer is not None and slot.writer.serving
        }

    def progress(self) -> tuple[int, int]:
        """How far all writers have come, and how many commands that the log is known to hold wait for them."""
        found = [slot.writer.progress for slot in self._slots.values() if slot.writer is not None]
        unread = self._feed.behind() if self._feed is not None else 0
        return sum(taken for taken, _ in found), unread + sum(waiting for _, waiting in found)

    def wake(self) -> None:
        """Let every writer look again: new definitions are there."""
        for slot in self._slots.values():
            if slot.writer is not None:
                slot.writer.wake()

    def stop(self) -> None:
        """Finish what is under way and return from `run`."""
        self._stop.set()

    async def run(self) -> None:
        """Work until stopped.

        Raises:
            LogError: the operator has to act; see its kinds.
        """
        topics = (self.log.topics.commands, self.log.topics.definition_commands)
        feed = self._feed = await self.log.feed(GROUP, self.member or self.worker_id, topics)
        try:
            while not self._stop.is_set():
                await self._turn(feed)
        finally:
            await self._end_all(self._slots.keys())
            await feed.close()
            await self._appenders.close()

    async def _turn(self, feed: CommandFeed) -> None:
        polled = await feed.poll(CROWDED_POLL_MS if self._crowded(feed) else POLL_MS)
        # At once: a writer that starts while something is awaited wants them from another offset on.
        self._hand_over(polled)
        await self._reconcile(feed)
        for slot in self._slots.values():
            if slot.task is not None and slot.task.done() and not slot.stopping:
                # Only a failure that no new claim can mend ends a slot's task.
                slot.task.result()

    def _crowded(self, feed: CommandFeed) -> bool:
        for tp, slot in self._slots.items():
            crowded = slot.writer is not None and slot.writer.crowded
            if crowded != slot.paused:
                slot.paused = crowded
                (feed.pause if crowded else feed.resume)(tp)
        return any(slot.paused for slot in self._slots.values())

    def _hand_over(self, polled: Mapping[TopicPartition, Sequence[RawRecord]]) -> None:
        for tp, raws in polled.items():
            slot = self._slots.get(tp)
            if slot is not None and slot.writer is not None:
                slot.writer.offer(raws)

    async def _reconcile(self, feed: CommandFeed) -> None:
        assigned = feed.assignment()
        await self._end_all(self._slots.keys() - assigned)
        for tp in sorted(assigned - self._slots.keys()):
            slot = Slot(tp)
            slot.task = asyncio.create_task(self._keep_writing(slot, feed), name=f"writer {tp}")
            self._slots[tp] = slot

    async def _end_all(self, tps: Iterable[TopicPartition]) -> None:
        await asyncio.gather(*(self._end(self._slots.pop(tp)) for tp in sorted(tps)))

    async def _end(self, slot: Slot) -> None:
        slot.stopping = True
        if slot.writer is not None:
            slot.writer.stop()
        if slot.task is None:
            return
        try:
            await asyncio.wait([slot.task], timeout=BACKOFF_MAX_S * 2)
        finally:
            slot.task.cancel()
        await asyncio.gather(slot.task, return_exceptions=True)

    async def _keep_writing(self, slot: Slot, feed: CommandFeed) -> None:
        """Keep a writer on the partition until it is taken away, with a fresh claim after every failure."""
        failures = 0
        while not slot.stopping:
            appender: Appender | None = None
            deposed = False
            try:
                appender = await self._appenders.current()
                # While a connection was opened the partition may have gone to somebody else: claim nothing then.
                if not slot.stopping:
                    slot.writer = self.build(slot.tp, appender, feed)
                    slot.writer.alone, slot.writer.died_of = self._alone, self._died_of[slot.tp]
                    await slot.writer.run()
            except FATAL:
                raise
            except AppendFailed as error:
                logger.warning("%s", error)
                self._count_end(slot, WriterEnd.APPEND_FAILED)
                if appender is not None:
                    await self._appenders.spoiled(appender)
            except (Deposed, LogUnreachable) as error:
                logger.warning("%s: %s", slot.tp, error)
                deposed = isinstance(error, Deposed)
                self._count_end(slot, WriterEnd.DEPOSED if deposed else WriterEnd.LOG_UNREACHABLE)
            except Exception:
                # A command that kills its writer is tried again under new claims, then alone, then given up.
                logger.exception("the writer of %s died", slot.tp)
                self._count_end(slot, WriterEnd.ERROR)
                if slot.writer is not None and slot.writer.ledger.attempting >= 0:
                    self._died_of[slot.tp][slot.writer.ledger.attempting] += 1
            # Two that both believe to own a partition must not depose each other at every turn.
            served = slot.writer is not None and slot.writer.serving and not deposed
            failures = 0 if served else failures + 1
            slot.writer = None
            if not slot.stopping:
                await self._back_off(failures)

    @staticmethod
    def _count_end(slot: Slot, cause: WriterEnd) -> None:
        if slot.writer is not None:
            slot.writer.meters.ended(cause)

    async def _back_off(self, failures: int) -> None:
        longest_s = min(BACKOFF_MAX_S, BACKOFF_S * 2 ** min(failures, 8))
        await asyncio.sleep(longest_s * (0.5 + self.jitter() / 2))
