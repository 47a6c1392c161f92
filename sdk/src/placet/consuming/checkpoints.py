"""Where a consumer keeps its position: in a file, or wherever an object with two methods puts it.

The position is saved once the program has asked for the event after it, at most once a second, and when the
consumer ends. So what is saved is never ahead of what was handled, and a restart repeats the events of a second.
"""

from __future__ import annotations

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from placet.consuming.scope import Scope
from placet.errors import CheckpointNotSaved, CheckpointRefused

SAVE_EVERY_S = 1.0
FORMAT = 1


class Checkpoint(Protocol):
    """Keeps the position of one consumer. Its methods are called on a thread of their own, one at a time."""

    def load(self) -> str | None:
        """The cursor that was saved last; None if none was."""

    def save(self, cursor: str) -> None:
        """Keep a cursor in place of the one before: whatever happens, one of the two is loaded afterwards."""


class FileCheckpoint:
    """A position in a file, for one consumer at a time; the file is replaced as a whole, whatever happens.

    In the hands of a consumer it also says for which project and filters, and is refused for others.
    """

    def __init__(self, path: str | os.PathLike[str], scope: Scope | None = None) -> None:
        """`path` can be a symbolic link: then the file that it leads to is replaced."""
        self._path = Path(path).resolve()
        self._scope = scope

    def within(self, scope: Scope) -> FileCheckpoint:
        """The same file, for one consumer."""
        return FileCheckpoint(self._path, scope)

    def load(self) -> str | None:
        """The cursor in the file; None if there is no file.

        Raises:
            CheckpointRefused: the file is something else, or cannot be read, or is another consumer's.
            CheckpointNotSaved: it could not be replaced later.
        """
        self._check_writable()
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CheckpointRefused("unreadable", f"{self._path} cannot be read: {error}") from error
        except ValueError as error:
            raise self._refused() from error
        cursor = found.get("cursor") if isinstance(found, dict) else None
        if not isinstance(cursor, str) or not cursor or found.get("placet_checkpoint") != FORMAT:
            raise self._refused()
        if self._scope is not None:
            self._scope.check({**found, "cursor": cursor}, str(self._path))
        return cursor

    def save(self, cursor: str) -> None:
        """Replace the file.

        Raises:
            CheckpointNotSaved: it cannot be written.
        """
        scope = {} if self._scope is None else self._scope.fields()
        text = json.dumps({"placet_checkpoint": FORMAT, "cursor": cursor, **scope}) + "\n"
        try:
            self._write_new(text)
            self._new.replace(self._path)
            _sync_directory(self._path.parent)
        except OSError as error:
            raise self._not_saved(error) from error

    @property
    def _new(self) -> Path:
        return self._path.with_name(f"{self._path.name}.{os.getpid()}.new")

    def _write_new(self, text: str) -> None:
        with open(os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())

    def _check_writable(self) -> None:
        # Before the first event is handled, not after it: without a position, each start would handle it again.
        try:
            if not self._path.parent.is_dir():
                raise NotADirectoryError(f"there is no directory {self._path.parent}")
            if self._path.is_dir():
                raise IsADirectoryError(f"{self._path} is a directory")
            self._write_new("")
            self._new.unlink()
        except OSError as error:
            raise self._not_saved(error) from error

    def _not_saved(self, error: OSError) -> CheckpointNotSaved:
        return CheckpointNotSaved(f"the checkpoint {self._path} cannot be saved: {error}")

    def _refused(self) -> CheckpointRefused:
        return CheckpointRefused("unreadable", f"{self._path} is no checkpoint of placet.consume")


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":
        # Elsewhere a directory cannot be opened.
        return
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class Keeper:
    """Saves a consumer's position from time to time; without a checkpoint it keeps nothing."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self._checkpoint = checkpoint
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="placet-checkpoint")
        self._clock = asyncio.get_running_loop().time
        # The first time at once: also a program that never runs for a second gets on.
        self._saved_at_s = float("-inf")
        self._reached: str | None = None

    async def load(self) -> str | None:
        """The saved position; None if there is none.

        Raises:
            CheckpointRefused: the checkpoint gives an empty text, which is no position.
        """
        if self._checkpoint is None:
            return None
        found = await asyncio.get_running_loop().run_in_executor(self._threads, self._checkpoint.load)
        if found == "":
            raise CheckpointRefused("unreadable", "the checkpoint gives an empty position")
        return found

    async def reached(self, cursor: str) -> None:
        """Note that everything up to a position was handled, and save it if the last time is long enough ago."""
        self._reached = cursor
        if self.due_in_s() == 0.0:
            await self.save()

    def due_in_s(self) -> float | None:
        """The time until the position should be saved; None if it is saved already."""
        if self._checkpoint is None or self._reached is None:
            return None
        return max(self._saved_at_s + SAVE_EVERY_S - self._clock(), 0.0)

    async def save(self) -> None:
        """Save the position now, unless it is saved already. A save that was cancelled ends before the next one."""
        if self._checkpoint is None or self._reached is None:
            return
        cursor, save = self._reached, self._checkpoint.save
        await asyncio.get_running_loop().run_in_executor(self._threads, save, cursor)
        self._saved_at_s = self._clock()
        if self._reached == cursor:
            self._reached = None

    async def aclose(self) -> None:
        """Save the position for the last time."""
        try:
            await self.save()
        finally:
            self._threads.shutdown(wait=False)
