"""The file of a part while it is written: made for its owner alone, on the disk once it is closed."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any


class _Descriptor(io.FileIO):
    """The file below the buffer. Once it is given up, what writers still hold of it goes nowhere."""

    is_given_up = False

    def write(self, data: Any, /) -> int:
        """Write to the file, unless it is given up."""
        return memoryview(data).nbytes if self.is_given_up else super().write(data)


class PartFile(io.BufferedWriter):
    """A new file, by one descriptor from its making to its end."""

    def __init__(self, path: Path) -> None:
        """Make the file.

        Raises:
            OSError: it cannot be made, or is there already.
        """
        # The owner's alone, as every file with the log's contents.
        flags = os.O_CREAT | os.O_WRONLY | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = _Descriptor(os.open(path, flags, 0o600), "wb")
        super().__init__(self._descriptor)

    def complete(self) -> None:
        """Bring all of it to the disk and close it.

        Raises:
            OSError: it cannot be written.
        """
        self.flush()
        os.fsync(self.fileno())
        self.close()

    def give_up(self) -> None:
        """Write nothing more from now on: what waits is dropped, and no full disk is met again."""
        self._descriptor.is_given_up = True
