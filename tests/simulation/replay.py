"""I6: what live writers hold in memory equals what the log gives when it is read again from its first record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from log.places import TopicPartition
from ops.checker import Violation
from schemas.record import RawRecord
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.runtime.executions_partition import ExecutionsPartition
from services.runtime.ledger import Ledger
from tests.simulation.workers import Machine


def check_replay(
    machines: Sequence[Machine], records: Mapping[TopicPartition, Sequence[RawRecord]]
) -> list[Violation]:
    """Compare every serving writer of executions with a replay."""
    found = []
    for machine in machines:
        worker = machine.worker
        for slot in worker._slots.values() if worker is not None else ():
            writer = slot.writer
            if writer is None or not isinstance(writer.ledger.aggregates, ExecutionsPartition):
                continue
            replayed = _replayed(records[writer.events_tp])
            for name, live in _state(writer.ledger).items():
                if live != _state(replayed)[name]:
                    where = f"{machine.name} {writer.events_tp}"
                    found.append(Violation("I6", where, f"the live {name} is not the replayed one"))
    return found


def is_under_way(machines: Sequence[Machine], records: Mapping[TopicPartition, Sequence[RawRecord]]) -> bool:
    """Whether a writer has folded a batch that was not in the log yet when it was read."""
    writers = (
        slot.writer
        for machine in machines
        if machine.worker is not None
        for slot in machine.worker._slots.values()
        if slot.writer is not None
    )
    return any(writer.ledger.next_offset > len(records[writer.events_tp]) for writer in writers)


def _replayed(raws: Sequence[RawRecord]) -> Ledger:
    rules = Definitions(policies=PolicySet())
    ledger = Ledger(ExecutionsPartition(lambda: rules))
    for raw in raws:
        ledger.read(raw)
    return ledger


def _state(ledger: Ledger) -> dict[str, Any]:
    executions: Any = ledger.aggregates
    return {
        "claim": ledger.rule.claim,
        "time": ledger.now_ms,
        "progress": (ledger.commands_through, ledger.adopted_through, ledger.attempting, ledger.idle_claims),
        "executions": executions.live,
        "ended executions": executions.recent,
        "forgotten executions": executions.forgotten,
        "refused commands": executions.orphans,
        "uses of rules": executions.uses.entries,
        "rule_changes": (executions.rule_changes.every, executions.rule_changes.spent),
    }
