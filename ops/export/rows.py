"""From the records of one partition to the rows of an export: the term rule is applied, the rest is counted.

1. A record whose headers cannot be read is unreadable.
2. One that does not count by the term rule is refused: it is in no file.
3. One about the log itself (a claim, a sign of life, an adoption) counts and is in no file.
4. At the first that counts and whose schema this version does not know, because a newer one wrote it, reading stops:
   what was passed over would never be exported. The same is true of a claim; whether it counts is in its body, and
   if it does, so does what follows under it.
5. Another one that counts and whose body cannot be read is unreadable.
6. Every other record is one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from ops.export.columns import Row
from schemas import codec
from schemas.audit import TopicRole
from schemas.events import EVENTS
from schemas.events.log import LOG_EVENTS, WriterClaimed
from schemas.headers import read_event, read_labels
from schemas.ids import RULE_USES, project_of_definition, split_execution_key, split_rule_uses_key
from schemas.record import EventMeta, RawRecord, UnreadableRecord
from schemas.term import TermRule

# So many places of unreadable records are told; the rest is only counted.
TOLD_MAX = 100
# Why the codec cannot read what a newer version wrote.
UNKNOWN_SCHEMA = "unknown_schema"

_TEXT = msgspec.json.Encoder().encode
_CLAIM = codec.SUBJECTS[WriterClaimed]
_ABOUT_THE_LOG = frozenset(codec.SUBJECTS[model] for model in LOG_EVENTS)
_NAMES = {codec.SUBJECTS[model]: model.__name__ for model in EVENTS}


class Unread(NamedTuple):
    """A record that could not be read: its place, the type that its headers name, and why."""

    topic: str
    partition: int
    offset: int
    type: str
    reason: str
    detail: str


@dataclass(slots=True)
class Counts:
    """What became of the records that were read.

    Attributes:
        records: all of them.
        rows: events that were written.
        about_the_log: records about the log itself.
        refused: records that do not count.
        unreadable: records that cannot be read.
        unread: the first of the latter.
        newer: per partition, where reading stopped at a fact that a newer version wrote; it is not in `records`.
    """

    records: int = 0
    rows: int = 0
    about_the_log: int = 0
    refused: int = 0
    unreadable: int = 0
    unread: list[Unread] = field(default_factory=list)
    newer: list[Unread] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        """Add what became of further records."""
        self.records += other.records
        self.rows += other.rows
        self.about_the_log += other.about_the_log
        self.refused += other.refused
        self.unreadable += other.unreadable
        self.unread += other.unread[: TOLD_MAX - len(self.unread)]
        self.newer += other.newer


class PartitionRows:
    """Reads one partition in offset order.

    Attributes:
        counts: what became of the records since it was last taken.
    """

    def __init__(self, topic: str, role: TopicRole, rule: TermRule) -> None:
        """Begin at a place of a partition.

        Args:
            topic: the topic's name.
            role: which topic it is.
            rule: the term rule, with the claim in force at that place.
        """
        self.counts = Counts()
        self._topic = topic
        self._of_key = _of_definition if role == "definitions" else _of_execution
        self._rule = rule
        self._stop: int | None = None

    @property
    def claim(self) -> int:
        """The claim in force behind the last record."""
        return self._rule.claim

    def take_counts(self) -> Counts:
        """The counts so far; they begin anew."""
        taken, self.counts = self.counts, Counts()
        return taken

    @property
    def is_stopped(self) -> bool:
        """Whether a newer version wrote the next fact: nothing after it can be read."""
        return self._stop is not None

    def taken_of(self, raws: Sequence[RawRecord]) -> Sequence[RawRecord]:
        """Those of the records last read that are before the stop, if there is one."""
        return raws if self._stop is None else [raw for raw in raws if raw.offset < self._stop]

    def read(self, raws: Sequence[RawRecord]) -> list[Row]:
        """The rows of the next records, up to a fact that a newer version wrote."""
        rows: list[Row] = []
        self._rule.foresee(raws)
        for raw in raws:
            name = ""
            try:
                name, meta = read_labels(raw)
                if not self._admits(name, meta, raw):
                    self.counts.refused += 1
                elif name in _ABOUT_THE_LOG:
                    self.counts.about_the_log += 1
                else:
                    rows.append(self._row(name, meta, raw))
            except UnreadableRecord as error:
                if error.reason == UNKNOWN_SCHEMA:
                    self._stop = raw.offset
                    self.counts.newer.append(self._unread(raw, name, error))
                    break
                self._tell(raw, name, error)
        self.counts.records += len(self.taken_of(raws))
        self.counts.rows += len(rows)
        return rows

    def _admits(self, name: str, meta: EventMeta, raw: RawRecord) -> bool:
        # Whether a claim counts depends on its body, all else on the headers.
        if name != _CLAIM:
            return self._rule.admits_unread(meta, raw)
        try:
            claim = read_event(raw)
        except UnreadableRecord:
            # One that no decider signed is refused, whatever is in it.
            if not self._rule.vouches(raw):
                return False
            raise
        return self._rule.admits(claim, raw)

    def _row(self, name: str, meta: EventMeta, raw: RawRecord) -> Row:
        fields = _fields(name, raw.value)
        tenant, project, execution_id = self._of_key(raw.key, meta.tenant)
        return Row(
            raw.partition,
            raw.offset,
            meta.at_ms,
            tenant,
            project,
            execution_id,
            meta.version,
            meta.term,
            meta.event_id,
            meta.command_id,
            _NAMES[name],
            _TEXT(fields),
            fields,
        )

    def _tell(self, raw: RawRecord, name: str, error: UnreadableRecord) -> None:
        self.counts.unreadable += 1
        if len(self.counts.unread) < TOLD_MAX:
            self.counts.unread.append(self._unread(raw, name, error))

    def _unread(self, raw: RawRecord, name: str, error: UnreadableRecord) -> Unread:
        return Unread(self._topic, raw.partition, raw.offset, name[:200], error.reason, error.detail)


def _fields(name: str, value: bytes) -> dict[str, Any]:
    model, fields = codec.decode_fields(value)
    if codec.SUBJECTS[model] != name:
        raise UnreadableRecord("malformed", "ce_type is not the type of the body")
    if name not in _NAMES:
        raise UnreadableRecord("malformed", "a command is on an events topic")
    return fields


@lru_cache(maxsize=20_000)
def _of_execution(key: bytes, tenant: str) -> tuple[str, str, str]:
    """The tenant, project and execution of a key; as in the views, uses of a rule are events of `rule/…`."""
    if (uses := split_rule_uses_key(key)) is not None:
        return uses[0], uses[1], f"{RULE_USES}/{uses[2]}"
    try:
        return split_execution_key(key)
    except ValueError as error:
        raise UnreadableRecord("malformed", str(error)) from error


@lru_cache(maxsize=4096)
def _of_definition(key: bytes, tenant: str) -> tuple[str, str, None]:
    return tenant, project_of_definition(key), None
