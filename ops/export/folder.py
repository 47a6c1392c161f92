"""The folder of an export: what is in it, and how it grows by whole rounds.

A run begins by making its staging folder, whose random name is in the state before. A round is committed in four
steps, so that an export that is killed at any moment repeats and loses nothing:

1. Its files are complete, and on the disk, in the staging folder.
2. The state is replaced: it has the positions behind the round, and the names and places of its files. This commits
   the round.
3. The files are moved to their places.
4. The next commit, or the end, replaces the state by one without their names.

The next run first does what is left of step 3, and then removes what is left in the staging folder that the state
names: it belongs to a round that was not committed. A folder that is refused is left as it is.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from host.directories import make_private_directory, sync_directory
from log.places import TopicPartition
from ops.export import staging
from ops.export import state as states
from ops.export.errors import (
    FolderInUseError,
    ForeignFolderError,
    OtherFormatError,
    OutputUnusableError,
    StateDamagedError,
)
from ops.export.layout import LOCK, NEXT_STATE, STATE, Format
from ops.export.parts import Move
from ops.export.rows import Counts
from ops.export.state import VERSION, Position, State, TopicState


class Folder:
    """An export's folder, locked for this process until `close`.

    Attributes:
        root: its path.
        state: how far it has come.
        is_new: true if no export was made in it before.
        foreign: what is in a former run's staging folder and no export made; it was left there.
    """

    def __init__(self, root: Path, form: Format | None, *, verified: bool) -> None:
        """Open the folder, or make it; nothing else in it is changed.

        Args:
            root: its path.
            form: the format of its files; None for the one that it has, and Parquet for a new one.
            verified: whether the signatures of the records are verified.

        Raises:
            ExportRefusedError: it belongs to something else, or to another process; see its subclasses.
            OutputUnusableError: it cannot be read or made.
        """
        self.root = root
        self.is_new = not (root / STATE).exists()
        self.foreign: list[Path] = []
        try:
            # Looked at before the lock is made in it, and again once nobody else can change it.
            _opened(root, form, verified)
            make_private_directory(root)
            self._lock = _locked(root)
            try:
                self.state = _opened(root, form, verified)
            except BaseException:
                os.close(self._lock)
                raise
        except OSError as error:
            raise OutputUnusableError(root, error) from error

    @property
    def staging(self) -> Path:
        """The staging folder that the state names."""
        return self.root / self.state.staging

    def close(self) -> None:
        """Give the folder back."""
        os.close(self._lock)

    def topic(self, name: str, topic_id: str) -> TopicState:
        """The state of a topic; of one that is new to the folder, its beginning."""
        return self.state.topics.setdefault(name, TopicState(topic_id, {}))

    def complete(self) -> None:
        """Complete the last committed round, and remove what a run that was killed left.

        Raises:
            StateDamagedError: a file of the round is gone.
            OutputUnusableError: a file cannot be moved or removed.
        """
        try:
            self._move(self.state.moves)
            if self.state.staging:
                self.foreign += staging.remove(self.staging)
        except OSError as error:
            raise OutputUnusableError(self.root, error) from error
        self.state.moves, self.state.staging = [], ""

    def stage(self) -> Path:
        """Make the staging folder of this run, after `complete`.

        Returns:
            Its path.

        Raises:
            OutputUnusableError: it cannot be made.
        """
        self.state.staging = staging.new_name()
        try:
            self._save()
            self.staging.mkdir(mode=0o700)
            sync_directory(self.root)
        except OSError as error:
            raise OutputUnusableError(self.root, error) from error
        return self.staging

    def commit(self, tp: TopicPartition, position: Position, moves: Sequence[Move], counts: Counts) -> None:
        """Commit a round of one partition: steps 2 and 3.

        Args:
            tp: the partition, of a topic that `topic` was called for.
            position: the position behind the round.
            moves: its files.
            counts: what became of its records.

        Raises:
            OutputUnusableError: a file cannot be written.
        """
        totals = self.state.totals
        for name in totals.__struct_fields__:
            setattr(totals, name, getattr(totals, name) + getattr(counts, name))
        self.state.topics[tp.topic].partitions[str(tp.partition)] = position
        self.state.moves = list(moves)
        try:
            sync_directory(self.staging)
            self._save()
            self._move(moves)
        except OSError as error:
            raise OutputUnusableError(self.root, error) from error

    def finish(self) -> None:
        """Remove the staging folder, and replace the state by one that names neither it nor files: the last step 4.

        Raises:
            OutputUnusableError: it cannot be written.
        """
        self.complete()
        try:
            self._save()
        except OSError as error:
            raise OutputUnusableError(self.root, error) from error

    def _move(self, moves: Sequence[Move]) -> None:
        pairs = [(self.staging / move.staged, self.root / move.place) for move in moves]
        for staged, place in pairs:
            if not staged.exists() and not place.exists():
                raise StateDamagedError(self.root / STATE, f"{place.relative_to(self.root)} is gone")
        for staged, place in pairs:
            if staged.exists():
                make_private_directory(place.parent)
                staged.replace(place)
        # Those above, too: a run that was killed may have made them and no more.
        folders = {self.root / parent for move in moves for parent in PurePosixPath(move.place).parents}
        for folder in folders:
            sync_directory(folder)
        if folders and self.staging.exists():
            sync_directory(self.staging)

    def _save(self) -> None:
        path = self.root / NEXT_STATE
        flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(states.encode(self.state))
            file.flush()
            os.fsync(file.fileno())
        path.replace(self.root / STATE)
        sync_directory(self.root)


def _opened(root: Path, form: Format | None, verified: bool) -> State:
    """The state in a folder, or that of a new one; changes nothing."""
    path = root / STATE
    try:
        state = states.decode(path, path.read_bytes())
    except FileNotFoundError as error:
        if root.exists() and not _is_new(root):
            raise ForeignFolderError(root, STATE) from error
        return State(VERSION, form or Format.PARQUET, verified)
    if state.version != VERSION:
        raise OtherFormatError(root, "files of version", str(state.version), str(VERSION))
    if form is not None and state.format is not form:
        raise OtherFormatError(root, "files of the format", state.format.value, form.value)
    if state.verified != verified:
        raise OtherFormatError(root, "records that are", _checked(state.verified), _checked(verified))
    if state.staging:
        if not staging.is_name(state.staging):
            raise StateDamagedError(path, f"{state.staging} is no name of a staging folder")
        staging.check(root / state.staging)
    return state


def _is_new(root: Path) -> bool:
    """Whether a folder without a state has only what is made before it: the lock first, then the next state."""
    found = {entry.name for entry in os.scandir(root)}
    return not found or found == {LOCK} or found == {LOCK, NEXT_STATE}


def _locked(root: Path) -> int:
    descriptor = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise FolderInUseError(root) from error
    return descriptor


def _checked(verified: bool) -> str:
    return "verified by their signatures" if verified else "not verified by signatures"
