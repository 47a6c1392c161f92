"""The fold of one source partition into trust parts, and how it continues after any kind of end.

Reading begins at the checkpoint's `resume_offset`, where the oldest open call was proposed, or at the last
record counted, whichever comes first:

1. the first record must be the requested one, and the one at `through_offset` the one counted then;
2. up to `through_offset` the claim in force and the open calls are restored, and nothing is counted;
3. after it a part counts the records after its own offset: an interrupted round left some parts ahead;
4. once every part's own offset is reached, the parts must add up to the evidence, or everything is counted anew.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from log.errors import LogChanged
from schemas.adaptive import outcome_from_text
from schemas.canonical import sha256_hex
from schemas.codec import type_of
from schemas.event_signatures import TopicSignatures
from schemas.events import EVENTS
from schemas.events.calls import PolicyVerdictIssued
from schemas.events.log import WriterClaimed
from schemas.headers import read_event
from schemas.ids import split_execution_key
from schemas.record import Event, RawRecord, UnreadableRecord
from schemas.term import NO_CLAIM, TermRule
from schemas.trust import (
    COUNT_FORM,
    UNCLASSED,
    AnyPart,
    ClassPart,
    TrustCheckpoint,
    TrustPart,
    TrustRecord,
    class_key,
    part_key,
)
from schemas.trust_score import CONTRARY
from services.domain.trust.counting import Evidence, count, count_in_class
from services.processors.attribution import FOLLOWED, Attributed, OpenCalls
from services.processors.errors import PartsNotWhole, PositionLost
from services.processors.meters import Weighed
from services.processors.spans import record_counted
from vitals import tracing

logger = logging.getLogger(__name__)
NOTHING = -1
# They change no count, so they are neither verified nor read; they are more than half of a call's events.
_UNUSED = frozenset(EVENTS) - FOLLOWED - {WriterClaimed}


class PartitionFold:
    """Statistics of one source partition, folded from its records in offset order."""

    def __init__(
        self,
        partition: int,
        topic_id: str,
        checkpoint: TrustCheckpoint | None = None,
        parts: Iterable[AnyPart] = (),
        signatures: TopicSignatures | None = None,
    ) -> None:
        """Continue a partition.

        Args:
            partition: its number.
            topic_id: the id of the topic from which the records come.
            checkpoint: the last one written, or None to count from the first record.
            parts: the parts that were written; ignored without a checkpoint.
            signatures: verifies which facts a decider signed; None if nothing is signed.

        Raises:
            LogChanged: the checkpoint names another topic.
        """
        self.partition = partition
        self._known = checkpoint or _fresh(partition, topic_id)
        if self._known.topic_id != topic_id:
            raise changed_log(f"partition {partition} was counted on topic {self._known.topic_id}")
        held = tuple(parts) if checkpoint else ()
        self._parts: dict[bytes, AnyPart] = {part.key: part for part in held}
        self._changed: set[bytes] = set()
        self._weighed = Weighed(Counter(), Counter())
        self._calls = OpenCalls()
        self._rule = TermRule(self._known.resume_term, signatures)
        self._last = NOTHING
        self._last_id = ""
        self._at_ms = self._known.at_ms
        self._evidence, self._unreadable = self._known.evidence, self._known.unreadable
        self._unproved = max([self._known.through_offset, *(p.through_offset for p in held)])
        self._proved = checkpoint is None

    @property
    def start(self) -> int:
        """The offset of the first record that it needs."""
        return max(0, min(self._known.resume_offset, self._known.through_offset))

    @property
    def needs_through(self) -> int:
        """The last offset that the log must still hold; −1: none."""
        return self._unproved

    @property
    def position(self) -> int:
        """One past the last record that it was given."""
        return self._last + 1 if self._last != NOTHING else self.start

    def apply(self, raw: RawRecord, first: int | None = None) -> None:
        """Take a record; one that was taken before changes nothing.

        Args:
            raw: the record.
            first: the first offset of the records that it stands for (`record_filter`); None: its own offset.

        Raises:
            PositionLost: it is not the requested first record.
            LogChanged: another record is now at the offset that was counted last.
            PartsNotWhole: see the module.
        """
        begins = raw.offset if first is None else first
        if self._last == NOTHING and begins != self.start:
            raise PositionLost(
                f"Partition {self.partition} was requested from offset {self.start}, but delivered from "
                f"{begins}: the processor starts again."
            )
        if raw.offset <= self._last:
            return
        self._last, self._last_id = raw.offset, identity(raw)
        self._check_counted(raw.offset)
        if raw.offset >= self._known.resume_offset:
            self._read(raw)
        self._check_whole(raw.offset)

    def take_changes(self) -> list[AnyPart]:
        """The parts that changed since the last call, in order; none before they are proved."""
        if not self._proved:
            return []
        changed = [self._parts[key] for key in sorted(self._changed)]
        self._changed.clear()
        return changed

    def take_weighed(self) -> Weighed:
        """What was weighed since the last call."""
        found, self._weighed = self._weighed, Weighed(Counter(), Counter())
        return found

    def checkpoint(self) -> TrustCheckpoint | None:
        """The checkpoint that closes a round here; None if nothing is new, or the parts are not proved yet."""
        if not self._proved or self._last <= self._known.through_offset:
            return None
        oldest = self._calls.oldest
        return TrustCheckpoint(
            partition=self.partition,
            through_offset=self._last,
            record_id=self._last_id,
            term=self._rule.claim,
            topic_id=self._known.topic_id,
            at_ms=self._at_ms,
            evidence=self._evidence,
            unreadable=self._unreadable,
            resume_offset=oldest.offset if oldest else self._last + 1,
            resume_term=oldest.term if oldest else self._rule.claim,
            form=COUNT_FORM,
        )

    @property
    def parts(self) -> list[AnyPart]:
        """All parts, in the order of their keys."""
        return [self._parts[key] for key in sorted(self._parts)]

    def _read(self, raw: RawRecord) -> None:
        try:
            if is_unused(raw.value):
                return
            event = read_event(raw)
            if self._rule.admits(event, raw):
                self._count(event)
        except UnreadableRecord as error:
            self._report(raw, error)

    def _count(self, event: Event) -> None:
        found = self._calls.follow(event)
        if event.offset <= self._known.through_offset:
            return
        self._at_ms = event.meta.at_ms
        body = event.body
        if isinstance(body, PolicyVerdictIssued) and body.adaptive is not None and self._calls.follows(event):
            self._weighed.verdicts[outcome_from_text(body.adaptive).result] += 1
        if found is None:
            return
        if found.call.is_sampled and found.fact not in (None, "failure"):
            self._weighed.samples[found.fact] += 1
        evidence = self._evidence_of(event, found)
        if found.kind is not None:
            if tracing.spans is not None:
                record_counted(tracing.spans, event, found.kind)
            self._count_for_tool(evidence)
        if found.fact is not None and evidence.trust_class:
            self._count_for_class(evidence)
        elif found.fact in CONTRARY and evidence.history.values:
            self._count_for_class(replace(evidence, trust_class=UNCLASSED))

    def _evidence_of(self, event: Event, found: Attributed) -> Evidence:
        return Evidence(
            tenant=event.meta.tenant,
            project=split_execution_key(event.key)[1],
            agent=found.call.agent,
            tool=found.call.tool,
            kind=found.kind,
            at_ms=event.meta.at_ms,
            partition=self.partition,
            offset=event.offset,
            record_id=event.meta.event_id,
            term=event.meta.term,
            topic_id=self._known.topic_id,
            trust_class=found.call.trust_class,
            fact=found.fact,
            by=found.by,
            requester=found.call.requester,
            history=found.call.history,
        )

    def _count_for_tool(self, one: Evidence) -> None:
        key = part_key(one.tenant, one.project, one.agent, one.tool, self.partition)
        before = self._parts.get(key)
        self._put(key, before, count(before if isinstance(before, TrustPart) else None, one))

    def _count_for_class(self, one: Evidence) -> None:
        key = class_key(one.tenant, one.project, one.agent, one.tool, one.trust_class, self.partition)
        before = self._parts.get(key)
        part = before if isinstance(before, ClassPart) else None
        if one.fact == "failure" and (part is None or one.offset < part.begins_at):
            # A class begins with the first word of a person: an agent alone makes none.
            return
        self._put(key, before, count_in_class(part, one))

    def _put(self, key: bytes, before: AnyPart | None, after: AnyPart) -> None:
        self._evidence += 1
        if after is not before:
            self._parts[key] = after
            self._changed.add(key)

    def _report(self, raw: RawRecord, error: UnreadableRecord) -> None:
        if raw.offset <= self._known.through_offset:
            return
        self._unreadable += 1
        logger.warning("skipped a record at partition %d offset %d: %s", raw.partition, raw.offset, error)

    def _check_counted(self, offset: int) -> None:
        if offset == self._known.through_offset and self._last_id != self._known.record_id:
            raise changed_log(f"offset {offset} of partition {self.partition} held another record")

    def _check_whole(self, offset: int) -> None:
        if self._proved or offset < self._unproved:
            return
        found = sum(part.evidence for part in self._parts.values())
        if found != self._evidence:
            raise PartsNotWhole(self.partition, found, self._evidence)
        self._proved = True


def is_unused(value: bytes) -> bool:
    """True if a record is of a type that changes no count, by the schema that its value names."""
    return type_of(value) in _UNUSED


def identity(raw: RawRecord) -> str:
    """The identity of a record: its event id, or the SHA-256 of its value if it has no readable id."""
    for name, value in raw.headers:
        if name == "ce_id" and value.isascii():
            return value.decode()
    return sha256_hex(raw.value)


def group_by_partition(
    records: Iterable[TrustRecord],
) -> tuple[dict[int, TrustCheckpoint], dict[int, list[AnyPart]]]:
    """Checkpoints and parts by source partition."""
    checkpoints: dict[int, TrustCheckpoint] = {}
    parts: dict[int, list[AnyPart]] = {}
    for record in records:
        if isinstance(record, TrustCheckpoint):
            checkpoints[record.partition] = record
        else:
            parts.setdefault(record.partition, []).append(record)
    return checkpoints, parts


def changed_log(what: str) -> LogChanged:
    """The error if the log is not the one that was counted."""
    return LogChanged(
        "The log",
        f"is not the one that trust was counted from ({what})",
        "restore it from a backup; only if the log is intended as it is now, with all its topics from one moment, "
        "recreate the trust topic as well",
    )


def _fresh(partition: int, topic_id: str) -> TrustCheckpoint:
    return TrustCheckpoint(
        partition=partition,
        through_offset=NOTHING,
        record_id="",
        term=NO_CLAIM,
        topic_id=topic_id,
        at_ms=0,
        evidence=0,
        unreadable=0,
        resume_offset=0,
        resume_term=NO_CLAIM,
        form=COUNT_FORM,
    )
