"""How far the roles of a starting stack are, by their heartbeats: a start waits as long as one of them gets on."""

from __future__ import annotations

from collections.abc import Iterable

from ops.component import STARTING, Component
from ops.config import DataDir
from ops.status import left_to_read
from vitals.heartbeat_file import read_heartbeat

SAY_EVERY_S = 10.0


class StartProgress:
    """When a starting role last got on, and what each of them has left to read."""

    def __init__(self, directory: DataDir, now_s: float) -> None:
        """Begin.

        Args:
            directory: the stack's.
            now_s: monotonic seconds.
        """
        self._directory = directory
        self.begun_s = self.moved_s = now_s
        self._left: dict[str, str] = {}
        self._say_at_s = now_s + SAY_EVERY_S

    def look(self, parts: Iterable[Component], now_s: float) -> str:
        """Look at the heartbeats of roles, of which only those count that say that they are starting.

        Returns:
            What is left to read, for people who wait; empty if there is nothing new to say.
        """
        self._left = {}
        for part in parts:
            found = read_heartbeat(self._directory.status(part.name))
            if found is None or found[0].pid != part.pid or found[0].state != STARTING:
                continue
            heartbeat, age_s = found
            if left := left_to_read(heartbeat):
                self._left[part.name] = left
                self.moved_s = max(self.moved_s, now_s - age_s - heartbeat.stalled_ms / 1000)
        if not self._left or now_s < self._say_at_s:
            return ""
        self._say_at_s = now_s + SAY_EVERY_S
        return "; ".join(f"{name} {left}" for name, left in self._left.items())

    def left_of(self, name: str) -> str:
        """What a role had left to read when it was looked at last; empty if that is not known."""
        return self._left.get(name, "")
