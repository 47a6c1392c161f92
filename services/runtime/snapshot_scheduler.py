"""Keeps restarts short even if writers run for long: takes a snapshot of each partition every so many events.

A writer takes a snapshot only of what it has just read back, that is after a claim. A writer that runs for months
would leave months of reading to the next one. So another process reads the new events from the log meanwhile.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

LOOK_EVERY_S = 30.0
# About four seconds of reading, after which a writer serves again.
EVERY_EVENTS = 100_000

logger = logging.getLogger(__name__)


class SnapshotFailed(RuntimeError):
    """The snapshot was not written; the message gives the reason."""


@dataclass(slots=True)
class SnapshotScheduler:
    """Watches the partitions that this process writes.

    Attributes:
        ends: returns, for each partition that is written here now, one past its last event.
        take: takes a snapshot of a partition; returns the offset that it reaches.
        every_events: the number of events between snapshots.
    """

    ends: Callable[[], Mapping[int, int]]
    take: Callable[[int], Awaitable[int]]
    every_events: int = EVERY_EVENTS
    _taken_at: dict[int, int] = field(default_factory=dict)

    async def run(self) -> None:
        """Check again and again, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Take the snapshots that are due, one after the other.

        A partition that is new here was read back just now, so its events count from there. If a snapshot fails, it
        is tried again after as many more events; only the next start depends on it.
        """
        ends = self.ends()
        self._taken_at = {partition: self._taken_at.get(partition, end) for partition, end in ends.items()}
        for partition, end in ends.items():
            if end - self._taken_at[partition] < self.every_events:
                continue
            try:
                self._taken_at[partition] = await self.take(partition)
                logger.info(
                    "partition %d: the next start reads from %d", partition, self._taken_at[partition]
                )
            except SnapshotFailed as error:
                logger.warning("no snapshot of partition %d: %s", partition, error)
                self._taken_at[partition] = end


async def take_in_process(settings: Mapping[str, str], partition: int) -> int:
    """Take a snapshot in a separate process, so that no decision waits for the reading.

    Args:
        settings: the decider's settings.
        partition: the partition of the executions topic.

    Returns:
        The offset that the snapshot reaches.

    Raises:
        SnapshotFailed: the process reported an error, or ended without one.
    """
    pipe = asyncio.subprocess.PIPE
    own = {
        "kafka_settings": settings.get("kafka_settings_of_snapshots") or settings.get("kafka_settings", "")
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.runtime.snapshot_once", str(partition)),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )
    try:
        said, complained = await process.communicate(json.dumps({**settings, **own}).encode())
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        words = complained.decode(errors="replace").strip().splitlines()
        raise SnapshotFailed(words[-1] if words else f"its process ended with {process.returncode}")
    return int(json.loads(said)["next_offset"])
