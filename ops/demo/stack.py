"""The demo's own stack: a child process that ends with the demo."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from ops import process
from ops.component import READY
from ops.config import DataDir
from ops.errors import OpsError
from ops.status import Stack, read_stack

POLL_S = 0.1
STOP_GRACE_S = 60.0
# Each of the demo's agents does the work of many, and makes in a minute the calls of an hour.
QUOTAS = ("--agent-proposals-per-minute", "60000", "--tenant-proposals-per-minute", "60000")
PLACET = Path(sys.executable).with_name("placet")


class OwnStack:
    """The stack of a data directory: the one that runs there, or one that this object starts.

    A stack started here ends with this process, even if the process is killed. Create it in the main thread.
    """

    def __init__(self, directory: DataDir) -> None:
        self._directory = directory
        self._log = directory.log("demo-stack")
        self._child: subprocess.Popen[bytes] | None = None
        if read_stack(directory).state != READY:
            command = [str(PLACET), "up", "--data-dir", str(directory.root), "--port", "0", *QUOTAS]
            self._child = process.spawn(command, self._log)

    def wait_ready(self) -> Stack:
        """Wait until it is ready.

        Raises:
            OpsError: it could not be started.
        """
        while (stack := read_stack(self._directory)).state != READY:
            if self._child is None or self._child.poll() is not None:
                raise OpsError(f"Placet did not start: {self._last_words()}")
            time.sleep(POLL_S)
        return stack

    def stop(self) -> None:
        """Stop it, if it was started here, and wait for its end."""
        if self._child is not None:
            process.stop(self._child, STOP_GRACE_S)

    def _last_words(self) -> str:
        if not self._log.exists():
            return f"run placet status --data-dir {self._directory.root}."
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else f"read {self._log}."
