"""The ledger: the state folded from the accepted records of one events partition, with any aggregates.

It is a pure fold: read in offset order, from the beginning or from a snapshot, it always gives the same state. Live
decisions and recovery use the same `apply`. They differ when it fails: a decision that cannot be folded ends its
writer before it is recorded, but a recorded event must not end every reader that reaches it.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from log.errors import LogFromNewerVersion
from schemas.events.log import DefinitionsAdopted, WriterAlive, WriterClaimed
from schemas.headers import read_event, read_meta
from schemas.ids import LOG_KEYS
from schemas.message import Message
from schemas.record import Command, Event, EventMeta, RawRecord, UnreadableRecord
from schemas.term import TermRule
from services.runtime.answered import Seen
from services.runtime.effects import NOTHING, Effects
from services.runtime.offloading import Offload, in_place

SPARED_MAX = 10
# Records about the log itself, under a key of their own (`claim.log_key`).
_OF_THE_LOG = frozenset({WriterClaimed, WriterAlive, DefinitionsAdopted})

logger = logging.getLogger(__name__)


class Aggregates(Protocol):
    """The aggregates of a partition: executions, or definitions."""

    def decide(self, command: Command, now_ms: int) -> list[Message]:
        """The events of a new command; empty for a nudge that came early."""
        ...

    def apply(self, event: Event, of: Command | None = None) -> Effects:
        """Fold an accepted event.

        Args:
            event: the event.
            of: the command that was just decided, whose sender is charged; None if the event is read from the log.

        Returns:
            Its effects on other partitions.
        """
        ...

    def set_aside(self, event: Event, error: Exception) -> None:
        """Take an accepted event that `apply` failed on: decide nothing more about its aggregate, and continue."""
        ...

    def set_unread_aside(self, key: bytes, meta: EventMeta, error: Exception) -> bool:
        """Take an accepted record whose body cannot be read: decide nothing more for its key, and continue.

        Returns:
            True if that is possible; if not, nothing can be decided on the partition.
        """
        ...

    def seen(self, key: bytes, command_id: str, digest: str) -> Seen:
        """The status of a command: new, a repeat, or another body under the id of an answered one."""
        ...

    def next_version(self, key: bytes) -> int:
        """The number of the aggregate's next event, from 1."""
        ...


@dataclass(slots=True)
class Ledger:
    """One partition's fold.

    Attributes:
        aggregates: the fold of the aggregates' events.
        rule: the term rule with the claim in force.
        writer: the process that made the claim, by a name that no other process has.
        next_offset: one past the last record read.
        reading_to: where the reading under way ends; at most `next_offset` if there is none.
        last_record_id: the event id of the last record accepted.
        last_offset: that record's offset; −1 before the first.
        now_ms: the log's time: the newest time of any accepted record.
        commands_through: every command up to this offset is processed.
        adopted_through: the offset of the newest definition in force here.
        attempting: the command that a careful writer was about to decide, if it has left no trace since.
        attempted_by: the writers that tried it alone, one name for each term; empty if `attempting` names none.
        idle_claims: claims that won since the last progress, not counting progress one by one.
        events_since_snapshot: the number of records read since the fold or its snapshot began.
        unreadable: the number of records that could not be read at all.
        offload: runs the folding of records and the decisions on them, if these may take long.
    """

    aggregates: Aggregates
    rule: TermRule = field(default_factory=TermRule)
    writer: str = ""
    next_offset: int = 0
    last_record_id: str = ""
    last_offset: int = -1
    now_ms: int = 0
    commands_through: int = -1
    adopted_through: int = -1
    attempting: int = -1
    attempted_by: tuple[str, ...] = ()
    idle_claims: int = 0
    events_since_snapshot: int = 0
    unreadable: int = 0
    reading_to: int = field(default=0, compare=False)
    offload: Offload = field(default=in_place, compare=False, repr=False)

    async def read_all(self, raws: Sequence[RawRecord]) -> None:
        """Read the next records of the partition."""
        await self.offload(partial(self._read_all, raws))

    def _read_all(self, raws: Sequence[RawRecord]) -> None:
        for raw in raws:
            self.read(raw)

    def read(self, raw: RawRecord) -> Event | None:
        """Read the next record of the partition; returns its event if it counts."""
        self.next_offset = raw.offset + 1
        self.events_since_snapshot += 1
        try:
            event = read_event(raw)
        except UnreadableRecord as error:
            self.unreadable += 1
            self._take_unread(raw, error)
            return None
        if not self.rule.admits(event, raw):
            return None
        self._take(event)
        return event

    def _take_unread(self, raw: RawRecord, error: UnreadableRecord) -> None:
        """Take a record whose body cannot be read, which may be an event that a newer version wrote.

        A foreign record has no term in force, so by the term rule it changes nothing.
        """
        try:
            meta = read_meta(raw)
        except UnreadableRecord:
            return
        if not self.rule.admits_unread(meta, raw):
            return
        what = f"The record of {raw.key.decode(errors='replace')} at partition {raw.partition}, offset {raw.offset}"
        logger.critical("%s cannot be read (%s): it is set aside, an operator must inspect it", what, error)
        self._pass(meta, raw.offset)
        if raw.key.startswith(LOG_KEYS) or not self.aggregates.set_unread_aside(raw.key, meta, error):
            # From here on it is unknown which writer or which rules are in force.
            raise LogFromNewerVersion(what, str(error))
        self._progress(meta.command_offset)

    def _take(self, event: Event) -> None:
        try:
            self.apply(event)
        except MemoryError:
            # It is not caused by the event: other readers, or this one after a restart, can read it.
            raise
        except Exception as error:
            what = f"{event.type} of {event.key.decode(errors='replace')} at offset {event.offset}"
            logger.critical(
                "%s cannot be read: it is set aside, an operator must inspect it", what, exc_info=True
            )
            self.aggregates.set_aside(event, error)

    def apply(self, event: Event, of: Command | None = None) -> Effects:
        """Fold an event that counts, one of a command that was just decided or of the log; see `Aggregates.apply`."""
        self._pass(event.meta, event.offset)
        if type(event.body) in _OF_THE_LOG:
            self._apply_own(event.body)
            return NOTHING
        if event.meta.command_offset > self.commands_through:
            self._progress(event.meta.command_offset)
        return self.aggregates.apply(event, of)

    def _apply_own(self, body: Message) -> None:
        if isinstance(body, WriterClaimed):
            self.writer = body.worker
            self.idle_claims += 1
        elif isinstance(body, WriterAlive):
            self._progress(body.commands_through)
            self._attempt(body.attempting)
        elif isinstance(body, DefinitionsAdopted):
            self.adopted_through = body.through_offset

    def _pass(self, meta: EventMeta, offset: int) -> None:
        self.next_offset = offset + 1
        self.last_record_id, self.last_offset = meta.event_id, offset
        if meta.at_ms > self.now_ms:
            self.now_ms = meta.at_ms

    def deaths_at(self, command_offset: int, of: str) -> int:
        """The number of processes, other than the asking one, that a command may have ended.

        They tried it alone, and it left no trace. A process can end only once, however often it tried, so each counts
        once. But a command that leaves no trace although it ends no process must be given up as well: after ten
        attempts, each further one counts.

        Args:
            command_offset: the command's offset.
            of: the asking process, which is evidently alive.
        """
        if command_offset != self.attempting:
            return 0
        return max(len({*self.attempted_by} - {of}), len(self.attempted_by) - SPARED_MAX)

    def _attempt(self, command_offset: int) -> None:
        # A command that is delivered again after it was processed never leaves a trace, even if it succeeds.
        if command_offset > self.commands_through:
            earlier = self.attempted_by if command_offset == self.attempting else ()
            self.attempting, self.attempted_by = command_offset, (*earlier, self.writer)

    def _progress(self, command_offset: int) -> None:
        if command_offset <= self.commands_through:
            return
        self.commands_through = command_offset
        if command_offset != self.attempting:
            # Progress one by one proves nothing about the next commands: the next writer must be careful as well.
            self.idle_claims = 0
        if self.attempting <= command_offset:
            self.attempting, self.attempted_by = -1, ()
