"""One role as a child process: started, watched, started again with back-off when it dies."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ops import process
from ops.component import BACKING_OFF, READY, Component
from ops.config import DataDir
from ops.last_words import NOTHING_PRINTED, last_words
from ops.restarts import HEALTHY_AFTER_S, describe_exit, restart_delay_s
from ops.status import role_state

STOP_GRACE_S = 10.0
LOG_BYTES_MAX = 20 * 1024 * 1024
# The role that is given the vault's master key.
SEALS = "gateway"


class RoleChild:
    """A role of the stack and the process that runs it at the moment."""

    def __init__(self, name: str, command: Sequence[str], directory: DataDir) -> None:
        self.name = name
        self.restarts = 0
        self.failures = 0
        # At any time since this child was made.
        self.was_ready = False
        self._command = tuple(command)
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._start_at: float | None = None
        self._printed_from = 0
        self._ended_by = ""

    def start(self) -> None:
        """Start its process; what it prints is appended to its log.

        Raises:
            OSError: There is no room for its log, or the machine has no process left.
        """
        log = self._directory.log(self.name)
        _rotate(log)
        self._printed_from = log.stat().st_size if log.is_file() else 0
        self._directory.status(self.name).unlink(missing_ok=True)
        environ = os.environ if self.name == SEALS else None
        self._process = process.spawn(self._command, log, environ, cwd=process.PACKAGE_ROOT)
        self._started_at, self._start_at = time.monotonic(), None

    def tick(self, now: float) -> str | None:
        """Notice a death, and start again when its time has come.

        Args:
            now: Monotonic seconds.

        Returns:
            One sentence about what happened, if something did.
        """
        if self._start_at is not None:
            return self._restart(now) if now >= self._start_at else None
        code = self._process.poll() if self._process else None
        if code is None:
            return None
        self.failures = 1 if now - self._started_at > HEALTHY_AFTER_S else self.failures + 1
        delay_s = restart_delay_s(self.failures)
        self._start_at = now + delay_s
        self._ended_by = f"it ended ({describe_exit(code)}): {self.last_words()}" if code > 0 else ""
        return f"{self.name} ended ({describe_exit(code)}); starting it again in {delay_s:.1f} s"

    def hasten(self) -> None:
        """Forget its failures and wait no longer: what kept it from working has come back."""
        self.failures = 0
        if self._start_at is not None:
            self._start_at = 0.0

    def request_stop(self) -> None:
        """Ask it to end, without waiting."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def stop(self) -> None:
        """Wait for its end; killed after a while."""
        if self._process is not None:
            process.stop(self._process, STOP_GRACE_S)

    @property
    def is_ready(self) -> bool:
        """True if it says that it works."""
        return self.component.state == READY

    @property
    def component(self) -> Component:
        """How it is now, by its own status file."""
        if self._process is None or self._start_at is not None:
            return Component(self.name, None, BACKING_OFF, None, self.restarts, self._ended_by)
        state, address, _ = role_state(self._directory, self.name, self._process.pid)
        if state == READY:
            self._ended_by, self.was_ready = "", True
        # A detail that counts seconds would be a new word at every look.
        return Component(self.name, self._process.pid, state, address, self.restarts, self._ended_by)

    def last_words(self) -> str:
        """Why it may have ended: the last message since its last start that tells of trouble, by its first line."""
        log = self._directory.log(self.name)
        if not log.is_file():
            return NOTHING_PRINTED
        with log.open("rb") as file:
            file.seek(self._printed_from)
            return last_words(file.read().decode(errors="replace"))

    def _restart(self, now: float) -> str:
        try:
            self.start()
        except OSError as error:
            self.failures += 1
            delay_s = restart_delay_s(self.failures)
            self._start_at = now + delay_s
            return (
                f"{self.name} cannot be started ({error.strerror or error}); trying again in {delay_s:.1f} s"
            )
        self.restarts += 1
        return f"{self.name} was started again"


def role_command(role: str, directory: DataDir) -> tuple[str, ...]:
    """The program that runs one role of the stack in this directory."""
    return (sys.executable, "-m", "ops.roles", role, "--config", str(directory.config))


def _rotate(log: Path) -> None:
    if log.is_file() and log.stat().st_size > LOG_BYTES_MAX:
        log.replace(log.with_suffix(".log.1"))
