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
from schemas.trust_family import Family, family_of
from schemas.trust_score import CONTRARY, Placed
from services.domain.trust.counting import combine


class KnownTrust(Struct, frozen=True):
    """What a reader knows of an agent and a tool, up to one offset of each partition of the log.

    `counts` are those of `combine`, `classes` the parts of one class of calls, `closing` those of other classes whose
    contrary facts count for it (`schemas.trust_family`), `all_classes` those of every class; `through` is partition →
    offset.
    """

    counts: Mapping[str, int]
    classes: tuple[ClassPart, ...]
    through: Mapping[int, int]
    all_classes: tuple[ClassPart, ...] = ()
    closing: tuple[ClassPart, ...] = ()

    @property
    def facts(self) -> tuple[Placed, ...]:
        """The facts of the class, and the contrary ones of the classes that close it."""
        return (
            *(Placed(part.partition, fact) for part in self.classes for fact in part.facts),
            *(
                Placed(part.partition, fact)
                for part in self.closing
                for fact in part.facts
                if fact.kind in CONTRARY
            ),
        )


# Tenant, project, agent and tool, and of a class its name.
Names = tuple[str, ...]
_TOOL = 4


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
    # The parts of classes, by tenant, project, agent and tool; those with contrary facts by these and the terms of
    # their arguments, and by families.
    classes: dict[Names, dict[str, ClassPart]] = field(default_factory=dict)
    contrary: dict[Names, dict[Family, dict[str, ClassPart]]] = field(default_factory=dict)
    changed: set[Names] = field(default_factory=set)

    @property
    def complete(self) -> bool:
        return self.whole and self.position >= self.end

    def drop(self, key: bytes) -> None:
        """Take an empty value: of the checkpoint, everything is counted anew; of a part, it is not of this count."""
        if key.startswith(LOG_KEYS):
            self.parts, self.waiting, self.evidence, self.checkpoint, self.whole = {}, {}, 0, None, False
            self.changed.update(self.classes)
            self.classes, self.contrary = {}, {}
            return
        names = names_of_key(key)
        self.waiting.pop(names, None)
        if (dropped := self.parts.pop(names, None)) is not None:
            self.evidence -= dropped.evidence
            if isinstance(dropped, ClassPart):
                del self.classes[names[:_TOOL]][dropped.trust_class]
                self._note_contrary(dropped, is_there=False)
                self.changed.add(names[:_TOOL])

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
            for names, part in self.waiting.items():
                if isinstance(part, ClassPart):
                    self.classes.setdefault(names[:_TOOL], {})[part.trust_class] = part
                    self._note_contrary(part, is_there=any(fact.kind in CONTRARY for fact in part.facts))
                    self.changed.add(names[:_TOOL])
            self.parts.update(self.waiting)
            self.waiting, self.evidence = {}, evidence

    def _note_contrary(self, part: ClassPart, *, is_there: bool) -> None:
        family = family_of(part.trust_class)
        place = (*_names_of(part)[:_TOOL], family.terms)
        if is_there:
            self.contrary.setdefault(place, {}).setdefault(family, {})[part.trust_class] = part
        else:
            self.contrary.get(place, {}).get(family, {}).pop(part.trust_class, None)

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
        # Of each tool that was asked for, the same tuple until a part changes: scores are kept by it.
        self._all_classes: dict[Names, tuple[ClassPart, ...]] = {}

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
        place = (tenant, project, agent, tool)
        of_tool = (source.parts.get(place) for source in self._sources.values())
        return KnownTrust(
            combine(part for part in of_tool if isinstance(part, TrustPart)),
            self._parts_of(place, trust_class),
            self.through,
            self._classes_of(place),
            self._closing(place, trust_class),
        )

    def _parts_of(self, place: Names, trust_class: str) -> tuple[ClassPart, ...]:
        found = (source.parts.get((*place, trust_class)) for source in self._sources.values())
        return tuple(part for part in found if isinstance(part, ClassPart))

    def _closing(self, tool: Names, trust_class: str) -> tuple[ClassPart, ...]:
        """The parts of other classes whose contrary facts count for a class, in the order of their names."""
        if not trust_class:
            return ()
        family = family_of(trust_class)
        found = [
            part
            for source in self._sources.values()
            for other, parts in source.contrary.get((*tool, family.terms), {}).items()
            if other.closes(family)
            for name, part in parts.items()
            if name != trust_class
        ]
        return tuple(sorted(found, key=lambda part: (part.trust_class, part.partition)))

    def _classes_of(self, tool: Names) -> tuple[ClassPart, ...]:
        for source in self._sources.values():
            for changed in source.changed:
                self._all_classes.pop(changed, None)
            source.changed.clear()
        if tool in self._all_classes:
            return self._all_classes[tool]
        of_tool = (source.classes.get(tool, {}) for source in self._sources.values())
        # Agents name any tool: nothing is kept of those without a fact.
        if found := tuple(part for classes in of_tool for part in classes.values()):
            self._all_classes[tool] = found
        return found


def _names_of(part: AnyPart) -> Names:
    names = (part.tenant, part.project, part.agent, part.tool)
    return (*names, part.trust_class) if isinstance(part, ClassPart) else names
