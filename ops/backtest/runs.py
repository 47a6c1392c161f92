"""The runs of one partition, folded by the decider's own folds; what has ended is dropped.

A run with an event that cannot be read or folded is set aside, as the decider sets it aside: nothing of it is judged.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from msgspec.structs import replace

from schemas.events.executions import ExecutionStarted
from schemas.ids import split_execution_key
from schemas.record import Event
from services.domain.execution.evolve import evolve, start
from services.domain.state import CLOSED, Execution
from services.domain.untrusted import UNREAD
from services.runtime.rule_changes import PendingRuleChanges

# Runs that have ended: between two events of one decision a run can look settled, and go on.
RECENT_MAX = 1_000


@dataclass(slots=True)
class Runs:
    """The live runs by key, and those set aside with the reason.

    Attributes:
        live: runs that have not ended, or have something left to settle.
        recent: the newest of those that have ended, oldest first.
        aside: key → why the run is not judged any more.
        changes: what these runs ask to change of standing rules.
    """

    live: dict[bytes, Execution] = field(default_factory=dict)
    recent: OrderedDict[bytes, Execution] = field(default_factory=OrderedDict)
    aside: dict[bytes, str] = field(default_factory=dict)
    changes: PendingRuleChanges = field(default_factory=PendingRuleChanges)

    def apply(self, event: Event) -> None:
        """Fold the next event that counts."""
        key = event.key
        if key in self.aside:
            return
        state = self.get(key)
        try:
            if state is None:
                if isinstance(event.body, ExecutionStarted):
                    started = start(split_execution_key(key), event.body, event.meta.at_ms)
                    # What is tainted is in the verdicts; to find it again takes two fifths of the time.
                    self.live[key] = replace(started, words=UNREAD)
                return
            state = evolve(state, event.body, event.meta.at_ms)
            self.changes.apply(event)
        except MemoryError:
            raise
        except Exception as error:  # Whatever a fold raises: the decider sets such a run aside, too.
            self.set_aside(key, f"{event.type} at offset {event.offset} cannot be folded: {error}")
            return
        self._keep(key, state)

    def get(self, key: bytes) -> Execution | None:
        """A run that is known; None before its start, once it is forgotten, and if it is set aside."""
        return self.live.get(key) or self.recent.get(key)

    def set_aside(self, key: bytes, why: str) -> None:
        """Judge nothing more of a run."""
        self.live.pop(key, None)
        self.recent.pop(key, None)
        self.aside.setdefault(key, why)

    def _keep(self, key: bytes, state: Execution) -> None:
        if state.lifecycle not in CLOSED or not _is_settled(state):
            self.live[key] = state
            self.recent.pop(key, None)
            return
        self.live.pop(key, None)
        self.recent[key] = state
        if len(self.recent) > RECENT_MAX:
            self.recent.popitem(last=False)


def _is_settled(state: Execution) -> bool:
    """True if nothing of an ended run can change any more, but for reports of harm."""
    return not state.due and all(hold.status != "open" for hold in state.holds.values())
