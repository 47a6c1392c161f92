"""The commands under way and their waiters. A wait is registered before its command is sent.

A command is identified by its id and the digest of its body: two bodies under one id are two waits, and only one of
them is answered by the first trace of that id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.live.facts import Group
from gateway.live.outcome import Outcome, outcome_of
from gateway.problems import Problem
from schemas.refusals import Refusal

Answered = Callable[[Outcome | Problem | None], None]


class Waited(NamedTuple):
    """The command waited for: its id, and the digest of its body."""

    command_id: str
    digest: str


class Wanted(NamedTuple):
    """A command to be looked up in the views; the same id on another key is another command."""

    tenant: str
    project: str
    command_id: str
    key: bytes


@dataclass(slots=True)
class Wait:
    """One command under way, and all who wait for its answer.

    Attributes:
        name: the command.
        key: its Kafka key.
        lane: the lane in which the tail will read its outcome.
        tenant: the sender's.
        project: the sender's.
        until: when its waiters get None because the decider has not answered, in the loop's seconds.
        look_at: when the views are queried next for an earlier answer.
        pause_s: the time until the query after that.
        stands: True if it is known to be in the log.
    """

    name: Waited
    key: bytes
    lane: int
    tenant: str
    project: str
    until: float
    look_at: float
    pause_s: float = 0.2
    stands: bool = False
    answered: list[Answered] = field(default_factory=list)


@dataclass(slots=True)
class Waiters:
    """The commands under way, by id and digest."""

    _waits: dict[str, dict[str, Wait]] = field(default_factory=dict)

    def get(self, name: Waited) -> Wait | None:
        """Return the wait for a command, if there is one."""
        return self._waits.get(name.command_id, {}).get(name.digest)

    def of_id(self, command_id: str) -> list[Wait]:
        """Return the waits for all bodies under a command id."""
        return list(self._waits.get(command_id, {}).values())

    def add(self, wait: Wait) -> None:
        """Register a wait; to be called before the command is sent."""
        self._waits.setdefault(wait.name.command_id, {})[wait.name.digest] = wait

    def take(self, group: Group) -> None:
        """Answer the waits that the events of a command concern.

        They answer the wait for their own body. The wait for another body under the same id is refused as a reuse,
        unless the events only refuse their own body: then the first body's trace is still to come.
        """
        for wait in self.of_id(group.command_id):
            if wait.key != group.key:
                continue
            if wait.name.digest == group.digest:
                self.answer(wait.name, outcome_of(group.events()))
            elif not group.refuses_reuse:
                self.answer(wait.name, reused())

    def answer(self, name: Waited, outcome: Outcome | Problem | None) -> None:
        """Call all waiters of a command, and forget it; None: the decider has not answered in time."""
        bodies = self._waits.get(name.command_id, {})
        wait = bodies.pop(name.digest, None)
        if not bodies:
            self._waits.pop(name.command_id, None)
        if wait is not None:
            for answered in wait.answered:
                answered(outcome)

    def overdue(self, now: float) -> list[Wait]:
        """Return the waits whose time is over."""
        return [wait for wait in self._all() if wait.until <= now]

    def to_look_up(self, now: float) -> list[Wanted]:
        """Return the commands to look up in the views now; the queries for each become less and less frequent."""
        found = [wait for wait in self._all() if wait.look_at <= now]
        for wait in found:
            wait.look_at = now + wait.pause_s
            wait.pause_s = min(wait.pause_s * 2, LOOK_PAUSE_MAX_S)
        return [Wanted(wait.tenant, wait.project, wait.name.command_id, wait.key) for wait in found]

    def close(self) -> None:
        """Answer all waits with None, because the gateway ends."""
        for wait in self._all():
            self.answer(wait.name, None)

    def _all(self) -> list[Wait]:
        return [wait for bodies in self._waits.values() for wait in bodies.values()]

    def __len__(self) -> int:
        return len(self._waits)


def reused() -> Problem:
    """Return the refusal of another body under an id that was already used."""
    return Problem(
        Refusal.IDEMPOTENCY_KEY_REUSED, "this idempotency key was used for another body: take a fresh one"
    )


LOOK_PAUSE_MAX_S = 1.0
