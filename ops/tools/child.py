"""The processes of a tool: its command, and what that starts in its process group, as `go run` starts the program."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ops import process
from ops.tools.guard import Guard

STANDARD_ERROR = 2
LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Launch:
    """How a tool is started.

    Attributes:
        command: program and arguments.
        directory: its working directory.
        environ: its environment.
        port: where it serves gRPC.
    """

    command: Sequence[str]
    directory: Path
    environ: Mapping[str, str]
    port: int


class ToolProcess:
    """A started command with its process group; what it prints goes to standard error.

    The group does not outlive this process, however it ends.
    """

    def __init__(self, launch: Launch) -> None:
        """Start it.

        Raises:
            OSError: The program does not exist or cannot be run.
        """
        self._guard = Guard(launch.environ)
        try:
            self._process = process.spawn(
                launch.command,
                STANDARD_ERROR,
                launch.environ,
                cwd=launch.directory,
                # By the child itself: this process can end before it knows the id.
                tell_pid=self._guard.descriptor,
            )
        except BaseException:
            self._guard.release()
            raise
        self.pid = self._process.pid

    async def wait_ended(self) -> None:
        """Return when the command has ended; its exit code stays to be collected by `collect`."""
        descriptor, ended = os.pidfd_open(self.pid), asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    async def stop(self, number: int, grace_s: float) -> bool:
        """Send a signal to the whole group, and wait until no process of it runs.

        Returns:
            False if some still run after `grace_s`; `collect` kills these.
        """
        self._signal(number)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_s
        while process.living_in_group(self.pid):
            if loop.time() > deadline:
                return False
            await asyncio.sleep(LOOK_EVERY_S)
        return True

    def collect(self) -> int:
        """Kill what is left of the group, and return the command's exit code; negative for a signal."""
        # Before the command's own exit code is read, no other process can get the group's id.
        if self._process.returncode is None:
            self._signal(signal.SIGKILL)
            self._guard.release()
        return self._process.wait()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)
