"""The content of `placet.trust` as far as this gateway has read it: parts by agent, and each partition's position."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from projections.folds.rows import moment
from schemas.record import RawRecord, UnreadableRecord
from schemas.trust import ClassPart, TrustCheckpoint, TrustPart, checkpoint_key, read_trust

logger = logging.getLogger(__name__)

COUNTS = ("successes", "failures", "unknowns", "approvals", "edits", "rejections")
Agent = tuple[str, str, str]  # tenant, project and agent


@dataclass(slots=True)
class TrustParts:
    """The newest value of each key. `complete` is True once everything present at the start was read."""

    complete: bool = False
    _parts: dict[bytes, TrustPart] = field(default_factory=dict)
    _of_agent: dict[Agent, set[bytes]] = field(default_factory=dict)
    _checkpoints: dict[int, TrustCheckpoint] = field(default_factory=dict)

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
        if isinstance(record, ClassPart):
            # What is shown of classes comes from the views, which have every fact.
            return
        self._parts[raw.key] = record
        self._of_agent.setdefault((record.tenant, record.project, record.agent), set()).add(raw.key)

    def forget(self) -> None:
        """Begin anew: the topic is read again from its first record."""
        self.complete = False
        self._parts, self._of_agent, self._checkpoints = {}, {}, {}

    def of_agent(self, tenant: str, project: str, agent: str) -> dict[str, dict[str, Any]]:
        """Return an agent's statistics by tool: sums over all partitions of the log, as the API shows them."""
        parts = [self._parts[key] for key in self._of_agent.get((tenant, project, agent), ())]
        tools: dict[str, list[TrustPart]] = {}
        for part in filter(self._is_of_this_log, parts):
            tools.setdefault(part.tool, []).append(part)
        return {tool: _sum(found) for tool, found in tools.items()}

    def through(self) -> Mapping[str, int]:
        """Return each partition of the log → the offset up to which its events are counted."""
        return {
            str(partition): checkpoint.through_offset
            for partition, checkpoint in sorted(self._checkpoints.items())
        }

    def _is_of_this_log(self, part: TrustPart) -> bool:
        checkpoint = self._checkpoints.get(part.partition)
        return checkpoint is not None and checkpoint.topic_id == part.topic_id

    def _drop(self, raw: RawRecord) -> None:
        if raw.key == checkpoint_key(raw.partition):
            self._checkpoints.pop(raw.partition, None)
        elif (part := self._parts.pop(raw.key, None)) is not None:
            self._of_agent[part.tenant, part.project, part.agent].discard(raw.key)


def _sum(parts: list[TrustPart]) -> dict[str, Any]:
    counts = {name: sum(getattr(part, name) for part in parts) for name in COUNTS}
    return {**counts, "last_evidence_at": moment(max(part.last_evidence_at_ms for part in parts))}
