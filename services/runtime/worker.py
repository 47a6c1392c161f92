"""A worker: the partitions that its group assigns to it, each with one writer.

The group only assigns. If two workers both act as the owner of a partition, the log decides between them
(`claim.py`), so nothing here needs to be fast or exact about ownership.
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
from services.runtime.meters import WriterEnd
from services.runtime.open_transactions import OpenTransactions
from services.runtime.writer import Deposed, PartitionWriter

GROUP = "placet-decider"
POLL_MS = 500
CROWDED_POLL_MS = 20
BACKOFF_S = 0.05
BACKOFF_MAX_S = 2.0
FATAL = (ClaimUnknown, TopicMissing, LogTruncated, LogDamaged, LogRefused, LogFromNewerVersion)

logger = logging.getLogger(__name__)

# Builds a writer on a fresh ledger; called for every claim.
BuildWriter = Callable[[TopicPartition, Appender, CommandFeed], PartitionWriter]


@dataclass(slots=True)
class Slot:
    """One assigned partition: its present writer, and the task that replaces the writer after failures."""

    tp: TopicPartition
    writer: PartitionWriter | None = None
    task: "asyncio.Task[None] | None" = None
    paused: bool = False
    stopping: bool = False


@dataclass(slots=True)
class Worker:
    """One member of the decider group.

    Attributes:
        log: the log of the partitions.
        worker_id: this process's unique name in claims; also in the group, if `member` is empty.
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
    _held: OpenTransactions = field(default_factory=OpenTransactions)
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock)
    # The number of this process's writers that died of a command that they tried alone, by its offset.
    _died_of: defaultdict[TopicPartition, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def __post_init__(self) -> None:
        self._appenders = Appenders(self.log)

    @property
    def writing(self) -> Sequence[TopicPartition]:
        """The partitions that a writer of this worker serves now."""
        return [tp for tp, slot in self._slots.items() if slot.writer is not None and slot.writer.serving]

    @property
    def settled(self) -> bool:
        """True if every assigned partition has a writer that serves it."""
        return bool(self._slots) and len(self.writing) == len(self._slots)

    @property
    def trouble(self) -> str:
        """Why a writer of this worker cannot decide; empty if all can."""
        writers = (slot.writer for slot in self._slots.values() if slot.writer is not None)
        wrong = next((writer.time.wrong for writer in writers if writer.time.wrong), "")
        held = self._held.trouble(self._feed.held_back() if self._feed is not None else {})
        return "; ".join(filter(None, (wrong, held)))

    def ends(self) -> dict[int, int]:
        """The partitions of the executions that this worker serves now → one past the last event of each."""
        return {
            tp.partition: slot.writer.ledger.next_offset
            for tp, slot in self._slots.items()
            if tp.topic == self.log.topics.commands and slot.writer is not None and slot.writer.serving
        }

    def terms(self) -> dict[int, int]:
        """The same partitions → the claim under which each is written."""
        return {
            tp.partition: slot.writer.ledger.rule.claim
            for tp, slot in self._slots.items()
            if tp.topic == self.log.topics.commands and slot.writer is not None and slot.writer.serving
        }

    def progress(self) -> tuple[int, int]:
        """The summed progress of all writers, and the number of commands known to wait for them in the log."""
        found = [slot.writer.progress for slot in self._slots.values() if slot.writer is not None]
        unread = self._feed.behind() if self._feed is not None else 0
        return sum(taken for taken, _ in found), unread + sum(waiting for _, waiting in found)

    def wake(self) -> None:
        """Make every writer check for new definitions."""
        for slot in self._slots.values():
            if slot.writer is not None:
                slot.writer.wake()

    def stop(self) -> None:
        """Finish the work under way and return from `run`."""
        self._stop.set()

    async def run(self) -> None:
        """Work until stopped.

        Raises:
            LogError: the operator must act; see its kinds.
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
        # At once: a writer that starts during an await wants the commands from another offset on.
        self._hand_over(polled)
        await self._reconcile(feed)
        for slot in self._slots.values():
            if slot.task is not None and slot.task.done() and not slot.stopping:
                # A slot's task ends only with a failure that no new claim can repair.
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
        """Keep a writer on the partition until it is reassigned, with a fresh claim after every failure."""
        failures = 0
        while not slot.stopping:
            appender: Appender | None = None
            deposed = False
            try:
                appender = await self._appenders.current()
                # The partition may have been reassigned while a connection was opened: claim nothing then.
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
            # Two workers that both act as the owner of a partition must not depose each other at every turn.
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
