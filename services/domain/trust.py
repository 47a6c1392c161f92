"""Trust as sufficient statistics: facts counted into parts, sums of parts, and a reader's view of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.record import RawRecord, UnreadableRecord
from schemas.trust import TrustCheckpoint, TrustPart, checkpoint_key, read_trust

Kind = Literal["successes", "failures", "unknowns", "approvals", "edits", "rejections"]
KINDS: tuple[Kind, ...] = ("successes", "failures", "unknowns", "approvals", "edits", "rejections")
PartKey = tuple[str, str, str, str]  # tenant, project, agent and tool


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact about an agent and a tool, with its position in the log."""

    tenant: str
    project: str
    agent: str
    tool: str
    kind: Kind
    at_ms: int
    partition: int
    offset: int
    record_id: str
    term: int
    topic_id: str

    @property
    def part(self) -> PartKey:
        """The key of the part in which it is counted."""
        return self.tenant, self.project, self.agent, self.tool


def count(part: TrustPart | None, evidence: Evidence) -> TrustPart:
    """The part with one more fact; the same part if it has counted that offset already."""
    if part is not None and evidence.offset <= part.through_offset:
        return part
    base = part or _first_part(evidence)
    return base.model_copy(
        update={
            evidence.kind: getattr(base, evidence.kind) + 1,
            "last_evidence_at_ms": evidence.at_ms,
            "through_offset": evidence.offset,
            "record_id": evidence.record_id,
            "term": evidence.term,
        }
    )


def _first_part(evidence: Evidence) -> TrustPart:
    return TrustPart(
        tenant=evidence.tenant,
        project=evidence.project,
        agent=evidence.agent,
        tool=evidence.tool,
        partition=evidence.partition,
        last_evidence_at_ms=evidence.at_ms,
        through_offset=evidence.offset,
        record_id=evidence.record_id,
        term=evidence.term,
        topic_id=evidence.topic_id,
    )


def combine(parts: Iterable[TrustPart]) -> dict[str, int]:
    """The sums of several parts' counts, and the time of the newest fact (0 if there is none)."""
    found = tuple(parts)
    sums: dict[str, int] = {kind: sum(getattr(part, kind) for part in found) for kind in KINDS}
    newest = max((part.last_evidence_at_ms for part in found), default=0)
    return sums | {"last_evidence_at_ms": newest}


def is_whole(parts: Iterable[TrustPart], through_offset: int, evidence: int) -> bool:
    """True if the parts of one partition are exactly those that a checkpoint was written for.

    A part only grows, so if an older value of a part has overwritten it, the sum does not match.
    """
    found = tuple(parts)
    return sum(part.evidence for part in found) == evidence and all(
        part.through_offset <= through_offset for part in found
    )


@dataclass(slots=True)
class _Source:
    """A reader's state of one source partition."""

    end: int
    position: int = 0
    parts: dict[PartKey, TrustPart] = field(default_factory=dict)
    waiting: dict[PartKey, TrustPart] = field(default_factory=dict)
    checkpoint: TrustCheckpoint | None = None
    whole: bool = False

    @property
    def complete(self) -> bool:
        return self.whole and self.position >= self.end

    def forget(self) -> None:
        self.parts, self.waiting, self.checkpoint, self.whole = {}, {}, None, False

    def take_part(self, part: TrustPart) -> None:
        key = part.tenant, part.project, part.agent, part.tool
        held = self.waiting.get(key) or self.parts.get(key)
        # A late writer may repeat an older value; it is ignored.
        if held is None or part.through_offset >= held.through_offset:
            self.waiting[key] = part

    def take_checkpoint(self, checkpoint: TrustCheckpoint) -> None:
        if self.checkpoint is not None and checkpoint.through_offset < self.checkpoint.through_offset:
            return
        merged = self.parts | self.waiting
        self.whole = is_whole(merged.values(), checkpoint.through_offset, checkpoint.evidence)
        self.checkpoint = checkpoint
        if self.whole:
            self.parts, self.waiting = merged, {}


class TrustBook:
    """Trust as one reader of `placet.trust` has read it; without a clock or Kafka.

    Parts become visible with the checkpoint that closes their round, so a citation is always the state of each source
    partition at one offset. Until every source partition has been read to its end as of the start, and as long as the
    parts of one do not add up, trust is missing (None), never a guess.
    """

    def __init__(self, ends: Mapping[int, int], topic_id: str) -> None:
        """Begin with nothing read.

        Args:
            ends: each partition of `placet.trust` → its high watermark when reading began.
            topic_id: the id of the topic of facts; statistics of another topic are rejected.
        """
        self._topic_id = topic_id
        self._sources = {partition: _Source(end) for partition, end in ends.items()}

    def apply(self, raw: RawRecord) -> None:
        """Take the next record of a partition, in offset order; an empty value deletes its key.

        Raises:
            UnreadableRecord: it is no trust record of this log. It is skipped: the caller reports it and continues.
        """
        source = self._sources[raw.partition]
        source.position = raw.offset + 1
        if not raw.value:
            if raw.key == checkpoint_key(raw.partition):
                source.forget()
            return
        record = read_trust(raw)
        if record.topic_id != self._topic_id:
            raise UnreadableRecord("foreign_log", f"{record.key.decode()} names topic {record.topic_id}")
        if isinstance(record, TrustPart):
            source.take_part(record)
        else:
            source.take_checkpoint(record)

    def advance(self, partition: int, position: int) -> None:
        """Record that a partition is read up to a position, if compaction left no record just before it."""
        source = self._sources[partition]
        source.position = max(source.position, position)

    @property
    def complete(self) -> bool:
        """True if every source partition is read and adds up."""
        return all(source.complete for source in self._sources.values())

    @property
    def through(self) -> dict[int, int]:
        """Source partition → offset of the log through which its evidence is known; −1: none yet."""
        return {
            partition: source.checkpoint.through_offset if source.checkpoint else -1
            for partition, source in sorted(self._sources.items())
        }

    def trust_for(self, tenant: str, project: str, agent: str, tool: str) -> dict[str, Any] | None:
        """The trust in a project's agent with a tool, ready to be cited in a verdict.

        Returns:
            The counts of `combine` and `through` (partition as text → offset), or None while incomplete.
        """
        if not self.complete:
            return None
        key = tenant, project, agent, tool
        parts = [source.parts[key] for source in self._sources.values() if key in source.parts]
        through = {str(partition): offset for partition, offset in self.through.items()}
        return {**combine(parts), "through": through}
