"""How far an export has come: what its folder has, and where each partition is read on."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ops.export.errors import StateDamagedError
from ops.export.layout import Format
from ops.export.parts import Move
from schemas.term import NO_CLAIM

# Of the layout, the columns and this file; another version of Placet may have another.
VERSION = 1


class Position(msgspec.Struct, frozen=True):
    """Where a partition is read on.

    Attributes:
        next_offset: the first offset that was not read.
        claim: the claim in force there.
        record_id: the name of the record before it; empty if there is none.
    """

    next_offset: int = 0
    claim: int = NO_CLAIM
    record_id: str = ""


class TopicState(msgspec.Struct):
    """A topic's id, and the positions in its partitions by their numbers."""

    topic_id: str
    partitions: dict[str, Position]

    def position(self, partition: int) -> Position:
        """The position in a partition; its beginning if nothing was read of it."""
        return self.partitions.get(str(partition), Position())


class Totals(msgspec.Struct):
    """What became of all records so far: see `rows.Counts`."""

    records: int = 0
    rows: int = 0
    about_the_log: int = 0
    refused: int = 0
    unreadable: int = 0


class State(msgspec.Struct):
    """The content of the state file.

    Attributes:
        version: see `VERSION`.
        format: the format of the files.
        verified: whether the signatures of the records were verified.
        topics: by their names.
        totals: what became of the records.
        staging: the staging folder of the run that wrote it; empty once that run is complete.
        moves: files that belong to these positions and may not be in their places yet.
    """

    version: int
    format: Format
    verified: bool
    topics: dict[str, TopicState] = {}
    totals: Totals = msgspec.field(default_factory=Totals)
    staging: str = ""
    moves: list[Move] = []


def encode(state: State) -> bytes:
    """The bytes of a state file."""
    return msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n"


def decode(path: Path, data: bytes) -> State:
    """The state in the bytes of a file.

    Raises:
        StateDamagedError: they are not one.
    """
    try:
        return msgspec.json.decode(data, type=State)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StateDamagedError(path, str(error)) from error
