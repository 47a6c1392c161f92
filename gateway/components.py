"""The parts of the installation as they are now, looked up once for all who ask at about the same time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.kafka_client import KafkaConfig, KafkaUnreachable
from gateway.kafka_cluster import broker_addresses
from schemas.headers import rfc3339
from schemas.status_file import STALLED, read_status

KEPT_S = 1.0

Component = dict[str, Any]


@dataclass(slots=True)
class Components:
    """The brokers as they answer, the roles by their own last word. Nobody's asking makes more than one look-up.

    An answer is kept for `KEPT_S`, whatever it says; a look-up that failed is kept for nobody but those who
    waited for it.
    """

    config: KafkaConfig
    directory: Path
    clock: Callable[[], float] = time.monotonic
    _looking: asyncio.Task[None] | None = field(default=None, init=False)
    _found: list[Component] = field(default_factory=list, init=False)
    _found_at: float = field(default=float("-inf"), init=False)

    async def now(self) -> list[Component]:
        """Each part, in a list of the caller's own."""
        if self.clock() - self._found_at >= KEPT_S:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            # One of those who wait may go away; the others still wait.
            await asyncio.shield(self._looking)
        return [dict(one) for one in self._found]

    async def _look(self) -> None:
        roles = await asyncio.to_thread(read_status_files, self.directory)
        self._found = [await kafka_component(self.config), *roles]
        self._found_at = self.clock()


async def kafka_component(config: KafkaConfig) -> Component:
    """The brokers of the cluster as one component; their process is not always on this machine."""
    try:
        addresses = await broker_addresses(config)
    except KafkaUnreachable:
        addresses = []
    return {
        "name": "kafka",
        "pid": None,
        "state": "ready" if addresses else "unreachable",
        "address": ",".join(addresses) or config.bootstrap_servers,
        "at": rfc3339(time.time_ns() // 1_000_000),
        "reason": None,
    }


def read_status_files(directory: Path) -> list[Component]:
    """The components' status files; one that is just being replaced or is none is left out."""
    found = []
    for path in sorted(directory.glob("*.json")):
        status = read_status(path)
        if status is not None and "components" not in status:
            found.append(
                {
                    "name": path.stem,
                    "pid": status.get("pid"),
                    "state": status["state"],
                    "address": status.get("address"),
                    "at": status.get("at"),
                    "reason": status.get("reason") or None,
                }
            )
    return found


def stalled(directory: Path) -> list[str]:
    """Each role that runs and does not do its work, with its own word on why."""
    return [
        f"{part['name']}: {part['reason']}"
        for part in read_status_files(directory)
        if part["state"] == STALLED
    ]
