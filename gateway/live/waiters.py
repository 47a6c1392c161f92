"""Who waits for which command's answer. A wait is registered before its command is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.live.outcome import Outcome
from gateway.problems import Problem

Answered = Callable[[Outcome | Problem | None], None]


@dataclass(slots=True)
class Wait:
    """One command under way, and everybody who asked for it.

    Attributes:
        command_id: the command.
        digest: of its body.
        key: its Kafka key.
        tenant: of who asked.
        project: likewise.
        until: when its askers are told that nobody has answered, in the loop's seconds.
        look_at: when the views are asked next whether it was answered long ago.
        pause_s: how long after that they are asked again.
    """

    command_id: str
    digest: str
    key: bytes
    tenant: str
    project: str
    until: float
    look_at: float
    pause_s: float = 0.2
    answered: list[Answered] = field(default_factory=list)


@dataclass(slots=True)
class Waiters:
    """The commands under way, by id."""

    _waits: dict[str, Wait] = field(default_factory=dict)

    def get(self, command_id: str) -> Wait | None:
        """The wait for a command, if somebody waits for it."""
        return self._waits.get(command_id)

    def add(self, wait: Wait) -> None:
        """Register before sending."""
        self._waits[wait.command_id] = wait

    def answer(self, command_id: str, outcome: Outcome | Problem | None) -> None:
        """Tell everybody who waits for it, and forget it; None: nobody has answered in time."""
        wait = self._waits.pop(command_id, None)
        if wait is not None:
            for answered in wait.answered:
                answered(outcome)

    def overdue(self, now: float) -> list[Wait]:
        """The waits whose time is over."""
        return [wait for wait in self._waits.values() if wait.until <= now]

    def to_look_up(self, now: float) -> list[Wait]:
        """The waits that should be looked for in the views; each is asked for less and less often."""
        found = [wait for wait in self._waits.values() if wait.look_at <= now]
        for wait in found:
            wait.look_at = now + wait.pause_s
            wait.pause_s = min(wait.pause_s * 2, LOOK_PAUSE_MAX_S)
        return found

    def close(self) -> None:
        """Answer everybody with nothing: the gateway ends."""
        for command_id in list(self._waits):
            self.answer(command_id, None)

    def __len__(self) -> int:
        return len(self._waits)


LOOK_PAUSE_MAX_S = 1.0
