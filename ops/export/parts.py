"""The files of one round of one partition, while they are written: each has one tenant's events of one day.

They are written in the staging folder and moved to their place once the state of the export names them (`folder`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

from ops.export.columns import Row
from ops.export.errors import ArrowMissingError
from ops.export.jsonl_part import JsonlPart
from ops.export.layout import Format, day_of, part_name, place, staged_name
from schemas.audit import TopicRole

# With more tenants and days at once, the files of the first are closed: what follows of them goes into others.
OPEN_MAX = 64
WAITING_BYTES_MAX = 48 * 1024 * 1024


class Move(NamedTuple):
    """A finished file: its name in the staging folder, and its place in the export."""

    staged: str
    place: str


class Part(Protocol):
    """A file that takes rows."""

    waiting_bytes: int

    def add(self, rows: list[Row]) -> None:
        """Add rows."""
        ...

    def flush(self) -> None:
        """Write what waits in memory."""
        ...

    def close(self) -> None:
        """Complete the file and bring it to the disk."""
        ...

    def abandon(self) -> None:
        """Close the file and write nothing more; it is removed by the next export."""
        ...


NewPart = Callable[[Path], Part]


def new_part_of(form: Format) -> NewPart:
    """What makes files of a format.

    Raises:
        ArrowMissingError: Arrow is not installed.
    """
    if form is Format.JSONL:
        return JsonlPart
    try:
        from ops.export.arrow_part import ParquetPart
    except ModuleNotFoundError as error:
        raise ArrowMissingError from error
    return ParquetPart


class Parts:
    """The files of a round, by tenant and day. `finish` ends the round; the next one can begin."""

    def __init__(self, staging: Path, role: TopicRole, form: Format) -> None:
        """Begin a round.

        Args:
            staging: an existing folder on the file system of the export.
            role: the topic of the rows.
            form: the format of the files.
        """
        self._staging = staging
        self._role: TopicRole = role
        self._form = form
        self._new = new_part_of(form)
        self._open: dict[tuple[str, int], Part] = {}
        self._moves: list[Move] = []

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows of one partition, in offset order.

        Raises:
            OSError: a file cannot be written.
        """
        groups: dict[tuple[str, int], list[Row]] = {}
        for row in rows:
            groups.setdefault((row.tenant, day_of(row.at_ms)), []).append(row)
        for group, its_rows in groups.items():
            self._part(group, its_rows[0]).add(its_rows)
        self._bound_memory()

    def finish(self) -> list[Move]:
        """Complete all files; what they are and where they belong.

        Raises:
            OSError: a file cannot be written.
        """
        while self._open:
            self._close_first()
        moves, self._moves = self._moves, []
        return moves

    def abandon(self) -> None:
        """Close the files of a round that is given up; the next export removes them."""
        while self._open:
            self._open.popitem()[1].abandon()

    def _part(self, group: tuple[str, int], first: Row) -> Part:
        if (found := self._open.get(group)) is not None:
            return found
        if len(self._open) >= OPEN_MAX:
            self._close_first()
        name = part_name(first.partition, first.offset, self._form)
        staged = staged_name(self._role, name)
        part = self._open[group] = self._new(self._staging / staged)
        self._moves.append(Move(staged, str(place(self._role, *group) / PurePosixPath(name))))
        return part

    def _close_first(self) -> None:
        # Before the state names the file, it is on the disk. One that cannot be completed is still to be abandoned.
        group, part = next(iter(self._open.items()))
        part.close()
        del self._open[group]

    def _bound_memory(self) -> None:
        parts = list(self._open.values())
        while sum(part.waiting_bytes for part in parts) > WAITING_BYTES_MAX:
            max(parts, key=lambda part: part.waiting_bytes).flush()
