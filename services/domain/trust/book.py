"""A reader's view of `placet.trust`: trust that is known in full, or missing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from schemas.ids import LOG_KEYS
from schemas.record import RawRecord, UnreadableRecord
from schemas.trust import (
    COUNT_FORM,
    AnyPart,
    ClassPart,
    TrustCheckpoint,
    TrustPart,
    names_of_key,
    read_trust,
)
from schemas.trust_score import Placed
from services.domain.trust.counting import combine


class KnownTrust(Struct, frozen=True):
    """What a reader knows of an agent and a tool, up to one offset of each partition of the log.

    `counts` are those of `combine`, `classes` the parts of one class of calls; `through` is partition → offset.
    """

    counts: Mapping[str, int]
    classes: tuple[ClassPart, ...]
    through: Mapping[int, int]

    @property
    def facts(self) -> tuple[Placed, ...]:
        """The facts of the class."""
        return tuple(Placed(part.partition, fact) for part in self.classes for fact in part.facts)


# Tenant, project, agent and tool, and of a class its name.
Names = tuple[str, ...]


@dataclass(slots=True)
class _Source:
    """A reader's state of one source partition.

    A part only grows, so if an older value of a part has overwritten it, the evidence does not add up.
    """

    end: int
    position: int = 0
    parts: dict[Names, AnyPart] = field(default_factory=dict)
    waiting: dict[Names, AnyPart] = field(default_factory=dict)
    evidence: int = 0
    checkpoint: TrustCheckpoint | None = None
    whole: bool = False

    @property
    def complete(self) -> bool:
        return self.whole and self.position >= self.end

    def drop(self, key: bytes) -> None:
        """Take an empty value: of the checkpoint, everything is counted anew; of a part, it is not of this count."""
        if key.startswith(LOG_KEYS):
            self.parts, self.waiting, self.evidence, self.checkpoint, self.whole = {}, {}, 0, None, False
            return
        names = names_of_key(key)
        self.waiting.pop(names, None)
        if (dropped := self.parts.pop(names, None)) is not None:
            self.evidence -= dropped.evidence

    def take_part(self, part: AnyPart) -> None:
        names = _names_of(part)
        held = self.waiting.get(names) or self.parts.get(names)
        # A late writer may repeat an older value; it is ignored.
        if held is None or part.through_offset >= held.through_offset:
            self.waiting[names] = part

    def take_checkpoint(self, checkpoint: TrustCheckpoint) -> None:
        if self.checkpoint is not None and checkpoint.through_offset < self.checkpoint.through_offset:
            return
        # Only what changed is added up: a reader does this for each round of each partition.
        evidence = self.evidence + sum(self._added(names, part) for names, part in self.waiting.items())
        self.whole = (
            checkpoint.form == COUNT_FORM
            and evidence == checkpoint.evidence
            and all(part.through_offset <= checkpoint.through_offset for part in self.waiting.values())
        )
        self.checkpoint = checkpoint
        if self.whole:
            self.parts.update(self.waiting)
            self.waiting, self.evidence = {}, evidence

    def _added(self, names: Names, part: AnyPart) -> int:
        before = self.parts.get(names)
        return part.evidence - (before.evidence if before else 0)


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
            source.drop(raw.key)
            return
        record = read_trust(raw)
        if record.topic_id != self._topic_id:
            raise UnreadableRecord("foreign_log", f"{record.key.decode()} names topic {record.topic_id}")
        if isinstance(record, TrustCheckpoint):
            source.take_checkpoint(record)
        else:
            source.take_part(record)

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

    def known(self, tenant: str, project: str, agent: str, tool: str, trust_class: str) -> KnownTrust | None:
        """What is known of a project's agent with a tool, and of one class of its calls; None while incomplete."""
        if not self.complete:
            return None
        of_tool, of_class = (
            [source.parts.get(names) for source in self._sources.values()]
            for names in ((tenant, project, agent, tool), (tenant, project, agent, tool, trust_class))
        )
        return KnownTrust(
            combine(part for part in of_tool if isinstance(part, TrustPart)),
            tuple(part for part in of_class if isinstance(part, ClassPart)),
            self.through,
        )


def _names_of(part: AnyPart) -> Names:
    names = (part.tenant, part.project, part.agent, part.tool)
    return (*names, part.trust_class) if isinstance(part, ClassPart) else names
