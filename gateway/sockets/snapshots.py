"""Snapshots: the state of channels at one moment, in messages small enough for every client.

The snapshots of a subscription are sent in parts. Only the very last part has the cursor of the moment; the cursor
of each earlier part leads back to the first, so that a reader who returns with it misses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Any, NamedTuple

import orjson

from gateway.live.cursor import Position, Vector
from gateway.shares.work import Owner, Work
from projections.folds.rows import Row

# Most clients take messages of 1 MiB and close the connection at a longer one.
PART_MAX_BYTES = 256 * 1024
ITEMS_MAX = 1_000
# In every other cursor the count of a command's messages that were sent is at least 1.
UNFINISHED = 0


class SnapshotsTooLarge(ValueError):
    """The channels of one row each exceed the limit, and such a channel without its row would show nothing."""


class Shown(NamedTuple):
    """A channel's state.

    Attributes:
        channel: its name.
        rows: its rows.
        item: shows one of them.
        sees: which of them this reader may see; None: all.
        rank: those of a lower rank get room first. 0 is what the reader has asked for by name; what is shown beside
            that can be left out, also where it is one row.
    """

    channel: str
    rows: Sequence[Row]
    item: Callable[[Row], dict[str, Any]]
    sees: Callable[[Row], bool] | None = None
    rank: int = 0


View = Callable[[Shown], Shown]


def unchanged(shown: Shown) -> Shown:
    """Show a channel as it is."""
    return shown


async def snapshot_frames(
    shown: Sequence[Shown],
    position: Position,
    bytes_max: int,
    work: Work,
    owner: Owner,
    back_to: str | None = None,
) -> list[bytes]:
    """Return the messages that show some channels, in order, with the cursors of the moment of the call.

    Of one rank, channels with fewer rows get room first: a full inbox never displaces the one row of an execution or
    a call.

    Args:
        shown: the channels.
        position: the position at that moment.
        bytes_max: the limit on the size of all items together; the rest is left out, and `total` still counts it.
        work: is charged for the work.
        owner: the subject that the work is for.
        back_to: the cursor of every part, if events from before this moment are still to be sent.

    Raises:
        SnapshotsTooLarge: there is no room for the only row of a channel.
    """
    finished = position.cursor() if back_to is None else back_to
    unfinished = begin_anew(position) if back_to is None else back_to
    runs_of: dict[str, list[list[bytes]]] = {}
    left = bytes_max
    shown = [await _seen(one, work, owner) for one in shown]
    for one in sorted(shown, key=lambda one: (one.rank, len(one.rows))):
        runs, left = await _runs(one, left, work, owner)
        if one.rank == 0 and len(one.rows) == 1 and not runs[0]:
            raise SnapshotsTooLarge(
                f"the snapshots of these channels are over {bytes_max} bytes: subscribe to fewer at once"
            )
        runs_of[one.channel] = runs
    parts: list[tuple[Shown, list[bytes], bool]] = []
    for one in shown:
        *early, last = runs_of[one.channel]
        parts += [*((one, run, True) for run in early), (one, last, False)]
    cursors = [*[unfinished] * (len(parts) - 1), finished]
    return [_frame(*part, cursor) for part, cursor in zip(parts, cursors, strict=True)]


async def _seen(shown: Shown, work: Work, owner: Owner) -> Shown:
    """Keep only the rows that the reader may see; they are checked on a thread, since there may be many."""
    if (sees := shown.sees) is None:
        return shown
    rows = await work.counted(owner, lambda: [row for row in shown.rows if sees(row)])
    return shown._replace(rows=rows)


def begin_anew(position: Position) -> str:
    """Return a cursor that leads back to the snapshots, and on the channel of events to this position."""
    return position.cursor_within(0, UNFINISHED, 1)


def is_unfinished(vector: Vector) -> bool:
    """Return True if a cursor is of a part before the last: its reader has not seen all of the snapshots."""
    return vector.given == UNFINISHED


async def _runs(shown: Shown, bytes_left: int, work: Work, owner: Owner) -> tuple[list[list[bytes]], int]:
    """Return the items of a channel in runs that fit one part each, at least one run; and the bytes that are left."""
    runs: list[list[bytes]] = [[]]
    size = 0
    async with aclosing(work.written(owner, islice(shown.rows, ITEMS_MAX), shown.item)) as items:
        async for item in items:
            if len(item) > bytes_left:
                return runs, 0
            bytes_left -= len(item)
            if runs[-1] and size + len(item) > PART_MAX_BYTES:
                runs.append([])
                size = 0
            runs[-1].append(item)
            size += len(item) + 1
    return runs, bytes_left


def _frame(shown: Shown, items: list[bytes], more: bool, cursor: str) -> bytes:
    return b'{"type":"snapshot","cursor":"%b","channel":%b,"items":[%b],"total":%d,"more":%b}' % (
        cursor.encode(),
        orjson.dumps(shown.channel),
        b",".join(items),
        len(shown.rows),
        b"true" if more else b"false",
    )
