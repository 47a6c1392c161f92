"""The store as the projector sees it: a small port with two implementations, `sqlite` and `postgres`.

Whoever implements it promises:

1. `apply` writes a batch's rows and positions in one transaction, or nothing.
2. A position moves only from where the writer believes it to be (compare-and-set), so that two projectors on
   one view cannot count a record twice or skip one: the second gets `PositionConflict`.
3. A view that was swapped for a rebuilt one takes no further batch: `ViewReplaced`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from host.errors import OperatorError
from log.places import TopicPartition
from projections.tables.columns import Key as Key
from projections.tables.columns import R, Table, TableOf
from projections.tables.columns import Values as Values
from schemas.term import NO_CLAIM

# By what a URL of a database is given, where nothing else is said.
SETTING = "DATABASE_URL"


class ViewError(OperatorError):
    """What keeps a view from being written or read; `str()` says what to do."""


class ViewUnavailable(ViewError):
    """The database cannot be reached, or holds no view yet. Try again; the operator starts or mends it."""


class ViewDamaged(ViewUnavailable):
    """The file does not hold what was written to it. The operator makes the view anew from the log."""


class DatabaseRefuses(ViewUnavailable):
    """The database lets nobody in as it was asked. The operator mends the user, the password or the name."""


class DatabaseUnfit(ViewError):
    """The database is of a kind in which no view can be kept. The operator names another."""


class ViewOutdated(ViewError):
    """The view was built by another version of Placet. The operator rebuilds it."""


class ViewHeld(ViewError):
    """A rebuilt view cannot take the place of the live one: what others have made hangs on that."""


class ViewReplaced(ViewError):
    """The view was swapped for a rebuilt one. The writer opens it again and goes on from its positions."""


class PositionConflict(ViewError):
    """Another projector moved a position meanwhile. The writer stops, or reads the positions again."""


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where a view has read one partition.

    `next_offset` is the first offset not read, `claim` the claim in force there, `record_id` names the record
    before it. `topic_id` names this very log: it is the id of the partition's first record, a claim with a
    fresh uuid, so that a topic made anew has another one, and a log restored from a copy has not.
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
    """A position before and after a batch; `before` is None where the view meets the partition first."""

    before: Position | None
    after: Position


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction writes: by table, rows as tuples in the order of its columns.

    `inserts` are of rows that are new, `upserts` of rows that may be there.
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
    """One moment of a view, for a comparison: every read sees the same state."""

    def positions(self) -> list[Position]:
        """Up to where this moment of the view has read."""
        ...

    def rows(self, table: Table) -> Iterator[Values]:
        """All rows of a table, in the order of its key (bytes of UTF-8)."""
        ...


class RowStore(Protocol):
    """What folding needs of a view: rows as they were, and a place for what they became."""

    def load(self, table: TableOf[R], keys: Sequence[Key], through: int | None = None) -> list[R]:
        """The rows with these primary keys, in any order; missing ones are left out.

        Args:
            table: which.
            keys: of the rows.
            through: how many of the batches that were applied here must be in the database before the rows are
                read, where that takes time; None for all of them.
        """
        ...

    def apply(self, batch: Batch) -> None:
        """Write a batch and its positions in one transaction.

        Raises:
            PositionConflict: a position is not where the batch starts; nothing was written.
            ViewReplaced: the view was swapped meanwhile; nothing that anybody reads was written.
            ViewUnavailable: the database failed; nothing was written.
        """
        ...


class ViewStore(RowStore, Protocol):
    """A view that is written."""

    def positions(self) -> list[Position]:
        """Up to where the view has read, by partition; empty for a new view."""
        ...

    def tracked(self, position: Position) -> int | None:
        """The tracking recorder's own word on the position: its next offset, or None."""
        ...

    def snapshot(self) -> AbstractContextManager[ViewReader]:
        """One consistent moment of the view to read at leisure."""
        ...

    def close(self) -> None:
        """Let go of the connections. May be called again."""
        ...
