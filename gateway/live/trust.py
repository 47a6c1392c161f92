"""The content of `placet.trust` as far as this gateway has read it: parts by agent, and each partition's position.

What is shown of classes comes from the views, which have every fact; their parts are for calls that are assessed.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from projections.folds.rows import moment
from schemas.record import RawRecord, UnreadableRecord
from schemas.trust import (
    COUNT_FORM,
    ClassPart,
    TrustCheckpoint,
    TrustPart,
    checkpoint_key,
    encode,
    read_trust,
)
from vitals.log_reach import LogReach

logger = logging.getLogger(__name__)

COUNTS = ("successes", "failures", "unknowns", "approvals", "edits", "rejections")
Agent = tuple[str, str, str]  # tenant, project and agent
# Of the parts for one assessment: reading more takes seconds.
TEXTS_MAX_CHARS = 4 * 1024 * 1024


class ClassText(NamedTuple):
    """The part of a class, as JSON: an agent can have thousands."""

    agent: Agent
    tool: str
    partition: int
    topic_id: str
    text: str


@dataclass(slots=True)
class TrustParts:
    """The newest value of each key. `is_read` is True once everything present at the start was read."""

    is_read: bool = False
    reach: LogReach = field(default_factory=LogReach)
    _parts: dict[bytes, TrustPart] = field(default_factory=dict)
    _classes: dict[bytes, ClassText] = field(default_factory=dict)
    _of_agent: dict[Agent, set[bytes]] = field(default_factory=dict)
    _checkpoints: dict[int, TrustCheckpoint] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """True if everything is read and reaches the log; otherwise nothing is trusted, as in deciders."""
        through = {number: one.through_offset for number, one in self._checkpoints.items()}
        return self.is_read and self.reach.is_reached(through)

    def take(self, raw: RawRecord) -> None:
        """Take in the next record of a partition; an unreadable one is reported and skipped."""
        if not raw.value:
            self._drop(raw)
            return
        try:
            record = read_trust(raw)
        except UnreadableRecord as error:
            logger.warning("a trust record at %d@%d: %s", raw.partition, raw.offset, error)
            return
        if isinstance(record, TrustCheckpoint):
            self._checkpoints[record.partition] = record
            return
        agent = (record.tenant, record.project, record.agent)
        self._of_agent.setdefault(agent, set()).add(raw.key)
        if isinstance(record, ClassPart):
            text = raw.value.decode()
            self._classes[raw.key] = ClassText(agent, record.tool, record.partition, record.topic_id, text)
        else:
            self._parts[raw.key] = record

    def forget(self) -> None:
        """Begin anew: the topic is read again from its first record."""
        self.is_read = False
        self._parts, self._classes, self._of_agent, self._checkpoints = {}, {}, {}, {}

    def of_agent(self, tenant: str, project: str, agent: str) -> dict[str, dict[str, Any]]:
        """Return an agent's statistics by tool: sums over all partitions of the log, as the API shows them."""
        tools: dict[str, list[TrustPart]] = {}
        for part in self._tools_of((tenant, project, agent)):
            tools.setdefault(part.tool, []).append(part)
        return {tool: _sum(found) for tool, found in tools.items()}

    def texts_of(self, tenant: str, project: str, agent: str, tools: Collection[str]) -> list[str] | None:
        """Return the parts of an agent's tools, and of the classes of their calls, as on `placet.trust`.

        None while they are not complete or of another form, or if they are more than are looked at.
        """
        if not self.complete or any(one.form != COUNT_FORM for one in self._checkpoints.values()):
            return None
        named = (tenant, project, agent)
        parts = [encode(part).decode() for part in self._tools_of(named) if part.tool in tools]
        left = TEXTS_MAX_CHARS
        for key in sorted(self._of_agent.get(named, ())):
            one = self._classes.get(key)
            if one is not None and one.tool in tools and self._is_of_this_log(one):
                parts.append(one.text)
                left -= len(one.text)
                if left < 0:
                    return None
        return parts

    def through(self) -> Mapping[str, int]:
        """Return each partition of the log → the offset up to which its events are counted."""
        return {
            str(partition): checkpoint.through_offset
            for partition, checkpoint in sorted(self._checkpoints.items())
        }

    def _tools_of(self, agent: Agent) -> list[TrustPart]:
        parts = (self._parts.get(key) for key in self._of_agent.get(agent, ()))
        return [part for part in parts if part and self._is_of_this_log(part)]

    def _is_of_this_log(self, part: TrustPart | ClassText) -> bool:
        checkpoint = self._checkpoints.get(part.partition)
        return checkpoint is not None and checkpoint.topic_id == part.topic_id

    def _drop(self, raw: RawRecord) -> None:
        if raw.key == checkpoint_key(raw.partition):
            self._checkpoints.pop(raw.partition, None)
        elif (part := self._parts.pop(raw.key, None)) is not None:
            self._of_agent[part.tenant, part.project, part.agent].discard(raw.key)
        elif (of_class := self._classes.pop(raw.key, None)) is not None:
            self._of_agent[of_class.agent].discard(raw.key)


def _sum(parts: list[TrustPart]) -> dict[str, Any]:
    counts = {name: sum(getattr(part, name) for part in parts) for name in COUNTS}
    return {**counts, "last_evidence_at": moment(max(part.last_evidence_at_ms for part in parts))}
