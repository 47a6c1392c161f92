"""One partition of the facts, from the stored position: the records that count, and the notices that follow.

Reading begins at the last record that was read, which must still be the same one.
"""

import logging
from collections.abc import Callable

from msgspec.structs import replace

from log.errors import LogChanged
from schemas.canonical import sha256_hex
from schemas.codec import type_of
from schemas.event_signatures import TopicSignatures
from schemas.events import EVENTS
from schemas.events.log import WriterClaimed
from schemas.headers import read_event
from schemas.record import RawRecord, UnreadableRecord
from schemas.term import TermRule
from services.processors.errors import PositionLost
from services.processors.fold import identity
from services.processors.notifications.facts import FOLLOWED, Facts
from services.processors.notifications.notice import Notice, Source
from services.processors.notifications.outbox import NOTHING, Position

logger = logging.getLogger(__name__)
_PASSED_OVER = frozenset(EVENTS) - FOLLOWED - {WriterClaimed}


class PartitionFold:
    """Folds a partition's records, in offset order."""

    def __init__(
        self,
        known: Position,
        facts: Facts,
        tell: Callable[[Notice], None],
        signatures: TopicSignatures | None = None,
    ) -> None:
        """Continue from a position.

        Args:
            known: the position up to which it was read.
            facts: gets the records that count.
            tell: called with the notices that follow.
            signatures: verifies which facts a decider signed; None if nothing is signed.
        """
        self.partition = known.partition
        self._known = known
        self._facts = facts
        self._tell = tell
        self._rule = TermRule(known.term, signatures)
        self._last, self._last_id = NOTHING, known.record_id

    @property
    def start(self) -> int:
        """The offset of the first record that it needs."""
        return max(0, self._known.through_offset)

    @property
    def position(self) -> int:
        """One past the last record that it was given."""
        return self._last + 1 if self._last != NOTHING else self.start

    def apply(self, raw: RawRecord) -> None:
        """Take a record; one that was taken before changes nothing.

        Raises:
            PositionLost: it is not the requested first record.
            LogChanged: another record is now at the offset that was read last.
        """
        if self._last == NOTHING and raw.offset != self.start:
            raise PositionLost(
                f"Partition {self.partition} was requested from offset {self.start}, but delivered from "
                f"{raw.offset}: the notifier starts again."
            )
        if raw.offset <= self._last:
            return
        self._last, self._last_id = raw.offset, identity(raw)
        if raw.offset > self._known.through_offset:
            self._read(raw)
        elif self._last_id != self._known.record_id:
            raise changed_log(f"offset {raw.offset} of partition {self.partition} held another record")

    def reached(self) -> Position:
        """The position up to which it has read."""
        through = max(self._last, self._known.through_offset)
        return self._known._replace(through_offset=through, record_id=self._last_id, term=self._rule.claim)

    def _read(self, raw: RawRecord) -> None:
        if type_of(raw.value) in _PASSED_OVER:
            return
        try:
            event = read_event(raw)
        except UnreadableRecord as error:
            logger.warning("skipped a record at partition %d offset %d: %s", raw.partition, raw.offset, error)
            return
        if not self._rule.admits(event, raw):
            return
        source = Source(raw.partition, raw.offset, raw.timestamp_ms, raw.key, "")
        notice = self._facts.follow(event, source)
        if notice is not None and raw.offset > self._known.quiet_through:
            self._tell(_with_digest(notice, raw))


def _with_digest(notice: Notice, raw: RawRecord) -> Notice:
    """Computed only here: few records lead to a notice."""
    return replace(notice, source=replace(notice.source, sha256=sha256_hex(raw.value)))


def changed_log(what: str) -> LogChanged:
    """The log is another one, or is shorter."""
    return LogChanged(
        "The log",
        f"is not the one that notifications were read from ({what})",
        "restore it from a backup; only if the log is intended as it is now, move the notifier's outbox away: the "
        "messages waiting in it are then not sent, and only new events are reported",
    )
