"""Kills a tool with all that it started once its supervisor has ended, in whatever way, SIGKILL included.

A child's death signal (`ops.process.spawn`) does not reach grandchildren, such as the server of `go run`. So a small
process beside the tool reads from a pipe of which the supervisor alone has the other end:

    python -IS guard.py    < the id of the tool's process group; the end of the pipe is the supervisor's
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, cast


class Guard:
    """A guard, as its supervisor sees it; it lives as long as the tool."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Start it.

        Raises:
            OSError: The machine has no process left.
        """
        # Without a death signal, and in a session of its own, which Ctrl-C in a terminal does not reach.
        self._process = subprocess.Popen(  # noqa: S603 - the command is this module
            (sys.executable, "-IS", __file__),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=dict(environ),
            cwd="/",
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._pipe = cast("IO[bytes]", self._process.stdin)

    @property
    def descriptor(self) -> int:
        """Takes the id of the process group to kill."""
        return self._pipe.fileno()

    def release(self) -> None:
        """End it without a kill: the tool's id is about to be free, and can become another program's."""
        self._process.kill()
        self._process.wait()
        # Only now, as the end of the pipe is what it kills at.
        self._pipe.close()


def main() -> int:
    """Wait for the end of the pipe, and kill the group that was named."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if group := int(sys.stdin.buffer.read() or 0):
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
