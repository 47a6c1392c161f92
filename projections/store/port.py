"""The store as the projector sees it: a small port with two implementations, `sqlite` and `postgres`.

Every implementation guarantees:

1. `apply` writes a batch's rows and positions in one transaction, or nothing.
2. A position moves only from the value that the writer expects (compare-and-set), so that two projectors on
   one view cannot count a record twice or skip one: the second gets `PositionConflict`.
3. A view that was swapped for a rebuilt one accepts no further batch: `ViewReplaced`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from host.errors import OperatorError, on_one_line
from log.places import TopicPartition
from projections.tables.columns import Key as Key
from projections.tables.columns import R, Table, TableOf
from projections.tables.columns import Values as Values
from schemas.term import NO_CLAIM

# The setting that gives a database URL, unless another is named.
SETTING = "DATABASE_URL"


class ViewError(OperatorError):
    """A view cannot be written or read; `str()` says what to do.

    Attributes:
        public: a sentence for clients; that of `str()` can name files, hosts and users of the installation.
    """

    public = "the views cannot be read now: their operator must act"


class ViewUnavailable(ViewError):
    """The database cannot be reached, or holds no view yet. Try again; the operator starts or repairs it."""

    public = "the views' database does not answer, or the projector has not started: try again in a moment"

    def __str__(self) -> str:
        # libpq's messages, which most of these end with, have several lines.
        return on_one_line(super().__str__())


class ViewDamaged(ViewUnavailable):
    """The file does not hold what was written to it. The operator rebuilds the view from the log."""

    public = "the views are damaged: their operator must rebuild them from the log"


class DatabaseRefuses(ViewUnavailable):
    """The database refuses the connection. The operator corrects the user, the password or the name."""

    public = "the views' database refuses this process: their operator must correct its settings"


class DatabaseUnfit(ViewError):
    """The database is of a kind that cannot hold a view. The operator names another."""


class ViewOutdated(ViewError):
    """The view was built by another version of Placet. The operator rebuilds it."""

    public = "the views are of another version of Placet: their operator must rebuild them"


class ViewHeld(ViewError):
    """A rebuilt view cannot replace the live one: objects that others have made depend on the live one."""


class ViewReplaced(ViewError):
    """The view was swapped for a rebuilt one. The writer opens it again and continues from its positions."""


class PositionConflict(ViewError):
    """Another projector moved a position meanwhile. The writer stops, or reads the positions again."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a view has read one partition.

    `next_offset` is the first offset not read, `claim` the claim in force at that point, `record_id` names the record
    before it. `topic_id` identifies this log: it is the id of the partition's first record, a claim with a fresh
    uuid, so that a recreated topic has another one, and a log restored from a copy has the same.
    """

    topic: str
    partition: int
    topic_id: str
    next_offset: int = 0
    claim: int = NO_CLAIM
    record_id: str = ""

    @property
    def tp(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def source(self) -> str:
        """The name of the partition in the tracking table; a recreated topic has another one."""
        return f"{self.topic}:{self.topic_id}:{self.partition}"


class Move(NamedTuple):
    """A position before and after a batch; `before` is None if the partition is new to the view."""

    before: Position | None
    after: Position


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows that one transaction writes: by table, as tuples in the order of its columns.

    `inserts` are rows that are new, `upserts` rows that can already exist.
    """

    moves: Sequence[Move]
    inserts: Mapping[str, Sequence[Values]] = field(default_factory=dict)
    upserts: Mapping[str, Sequence[Values]] = field(default_factory=dict)


def position_values(position: Position) -> Values:
    """A position as the columns of its table."""
    return (
        position.source,
        position.topic,
        position.partition,
        position.topic_id,
        position.next_offset,
        position.claim,
        position.record_id,
    )


class ViewReader(Protocol):
    """One snapshot of a view, for a comparison: every read sees the same state."""

    def positions(self) -> list[Position]:
        """How far this snapshot of the view has read."""
        ...

    def rows(self, table: Table) -> Iterator[Values]:
        """All rows of a table, in the order of its key (bytes of UTF-8)."""
        ...


class RowStore(Protocol):
    """The part of a view that folding needs: reading rows before an event, and writing them after it."""

    def load(self, table: TableOf[R], keys: Sequence[Key], through: int | None = None) -> list[R]:
        """The rows with these primary keys, in any order; missing ones are left out.

        Args:
            table: the table.
            keys: the keys of the rows.
            through: the number of batches applied here that must be in the database before the rows are read, if
                writing them takes time; None for all of them.
        """
        ...

    def apply(self, batch: Batch) -> None:
        """Write a batch and its positions in one transaction.

        Raises:
            PositionConflict: a position is not where the batch starts; nothing was written.
            ViewReplaced: the view was swapped meanwhile; nothing was written to the live view.
            ViewUnavailable: the database failed; nothing was written.
        """
        ...


class ViewStore(RowStore, Protocol):
    """A view that is written."""

    def positions(self) -> list[Position]:
        """How far the view has read, by partition; empty for a new view."""
        ...

    def tracked(self, position: Position) -> int | None:
        """The position according to the tracking recorder: its next offset, or None."""
        ...

    def snapshot(self) -> AbstractContextManager[ViewReader]:
        """One consistent snapshot of the view, for long reads."""
        ...

    def close(self) -> None:
        """Close the connections. Can be called again."""
        ...
