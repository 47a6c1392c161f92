"""What catching up works with: the log as it was, and the readers that come back to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Protocol

from gateway.live.past import PastLane
from gateway.problems import Problem
from gateway.pushes.hub import Receiver
from log.places import Bounds
from schemas.record import RawRecord

Chunk = tuple[int, list[RawRecord]]


class Past(Protocol):
    """The log, lane by lane."""

    async def bounds(self, lanes: Sequence[int]) -> dict[int, Bounds]:
        """Return, per lane, the first available offset and the one after the last."""
        ...

    def read(self, places: Mapping[int, int]) -> AsyncGenerator[Chunk]:
        """Yield records of lanes from offsets on, until closed."""
        ...


class Returning(Receiver, Protocol):
    """A reader that catches up.

    `catching` are the channels that it is receiving from the past; it removes those that it no longer wants. While it
    catches up, `behind` is the cursor of the last message that it was sent.
    """

    catching: set[str]

    @property
    def has_room(self) -> bool:
        """True if its queue has room for the messages of a whole command."""
        ...

    @property
    def is_closed(self) -> bool:
        """True if its queue takes no more messages, because the connection ends."""
        ...

    async def drained(self) -> None:
        """Wait until there is room, or the queue is closed."""
        ...

    def give_up(self, problem: Problem) -> None:
        """End the connection: its client comes back with the cursor of the last message that it has."""
        ...


async def has_place(past: Past, reader: PastLane) -> bool:
    """Return True if the log has the record that a cursor names on a lane.

    Raises:
        PastGone: it has another record there, or none.
        LogError: it cannot be read.
    """
    reader.begin_at(*(await past.bounds([reader.lane]))[reader.lane])
    async with aclosing(past.read({reader.lane: reader.place})) as chunks:
        async for _, raws in chunks:
            for raw in raws:
                reader.take(raw)
                return True
    return False
