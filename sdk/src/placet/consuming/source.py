"""Where events come from."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from placet.consuming.events import LogEvent, Reached

EARLIEST, LATEST = "earliest", "latest"


class Source(Protocol):
    """A log, read from a position on.

    Attributes:
        url: the gateway's.
    """

    url: str

    def reached(self, start: str, *, follow: bool) -> AsyncGenerator[Sequence[Reached], None]:
        """The events from a position on, in the order of each partition, each with the position after it.

        Args:
            start: `EARLIEST`, `LATEST` or a cursor.
            follow: False to end with what the log has now.

        Raises:
            CheckpointRefused: the cursor is not of this log, or the log has not everything after it.
            Unreachable: it could not be read for too long.
        """
        ...

    async def wants(self, event: LogEvent) -> bool:
        """Returns True if the program asked for the event."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...
