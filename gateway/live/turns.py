"""The turns of conversations, and those that a worker can take on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from gateway.live.shelf import Shelf
from projections.tables.conversations import TurnRow
from projections.tables.executions import ExecutionRow
from schemas.ids import execution_key


class Agent(NamedTuple):
    """An agent of a project; also the subject of those who wait for one of its turns."""

    tenant: str
    project: str
    name: str


class TurnKey(NamedTuple):
    """A turn: the Kafka key of its execution, and its id."""

    key: bytes
    turn_id: str


@dataclass(slots=True)
class Turns:
    """The cached turns. Of a conversation only the first turn that has not ended can be taken on.

    A turn that is being claimed here is not given to a second worker of this gateway; of workers at several gateways,
    the decider's answer says which one has it.
    """

    shelf: Shelf[TurnKey] = field(default_factory=Shelf)
    _open: dict[bytes, dict[str, TurnRow]] = field(default_factory=dict)
    _ready: dict[Agent, dict[TurnKey, None]] = field(default_factory=dict)
    _ready_of: dict[bytes, tuple[Agent, TurnKey]] = field(default_factory=dict)
    _attempts: dict[tuple[Agent, str], TurnKey] = field(default_factory=dict)
    _being_claimed: set[TurnKey] = field(default_factory=set)

    def get(self, place: TurnKey) -> TurnRow | None:
        """Return the row, if it is cached."""
        row: TurnRow | None = self.shelf.get(place)
        return row

    def put(self, row: TurnRow) -> None:
        """Store a turn's row."""
        key = execution_key(row["tenant"], row["project"], row["execution_id"])
        place = TurnKey(key, row["turn_id"])
        before = self.get(place)
        agent = agent_of(row)
        if before is not None and before["attempt_id"] != row["attempt_id"]:
            self._attempts.pop((agent, before["attempt_id"] or ""), None)
        is_open = row["ended_at_ms"] is None
        if row["status"] == "claimed" and row["attempt_id"]:
            self._attempts[agent, row["attempt_id"]] = place
        else:
            self._attempts.pop((agent, row["attempt_id"] or ""), None)
        self.shelf.put(place, row, pin=is_open)
        waiting = self._open.setdefault(key, {})
        if is_open:
            is_late = row["turn_id"] not in waiting and bool(waiting)
            waiting[row["turn_id"]] = row
            if is_late:
                # A row that was fetched can belong before one that the tail made.
                ordered = sorted(waiting.values(), key=itemgetter("log_offset"))
                self._open[key] = waiting = {each["turn_id"]: each for each in ordered}
        else:
            waiting.pop(row["turn_id"], None)
        self._note_ready(key, next(iter(waiting.values()), None))
        if not waiting:
            del self._open[key]

    def first_open(self, key: bytes) -> TurnRow | None:
        """Return the turn of an execution that is worked on, or is next; None if all have ended."""
        return next(iter(self._open.get(key, {}).values()), None)

    def of_attempt(self, agent: Agent, attempt_id: str) -> TurnKey | None:
        """Return the turn on which an attempt of an agent works now."""
        return self._attempts.get((agent, attempt_id))

    def reserve(self, agent: Agent, is_for: Callable[[TurnKey], bool]) -> TurnKey | None:
        """Take a turn that waits for a worker, the one that has waited longest; `give_back` must follow.

        Args:
            agent: the worker's agent.
            is_for: returns False for a turn that the worker cannot have now.
        """
        for place in self._ready.get(agent, ()):
            if place not in self._being_claimed and is_for(place):
                self._being_claimed.add(place)
                return place
        return None

    def give_back(self, place: TurnKey) -> None:
        """Note that a turn is no longer being claimed here."""
        self._being_claimed.discard(place)

    def _note_ready(self, key: bytes, first: TurnRow | None) -> None:
        now = None
        if first is not None and first["status"] == "waiting":
            now = agent_of(first), TurnKey(key, first["turn_id"])
        before = self._ready_of.get(key)
        if before == now:
            return
        if before is not None:
            agent, place = before
            del self._ready[agent][place]
            if not self._ready[agent]:
                del self._ready[agent]
            del self._ready_of[key]
        if now is not None:
            self._ready_of[key] = now
            self._ready.setdefault(now[0], {})[now[1]] = None


def agent_of(row: TurnRow | ExecutionRow) -> Agent:
    """Return the agent of a turn or an execution."""
    return Agent(row["tenant"], row["project"], row["agent"])
