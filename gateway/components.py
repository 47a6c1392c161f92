"""The parts of the installation as they are now; simultaneous requests share one look-up.

The heartbeats in the log show the processes of every machine. Those of this machine also write status files, which
can be read while the log is out of reach.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.kafka.cluster import broker_addresses
from gateway.live.heartbeats import LatestHeartbeats, ProcessHealth
from log.errors import LogError
from log.kafka.client import KafkaSettings
from schemas.headers import rfc3339
from vitals.heartbeat import SILENT
from vitals.heartbeat_file import read_heartbeat
from vitals.status_file import STALLED

KEPT_S = 1.0

Component = dict[str, Any]


@dataclass(slots=True)
class Components:
    """The brokers as they answer, the roles by their heartbeats. No request starts a look-up while one is running.

    A result is kept for `KEPT_S`, whatever it is; a failed look-up is an error only for those who waited for it.
    """

    config: KafkaSettings
    directory: Path
    heartbeats: LatestHeartbeats = field(default_factory=LatestHeartbeats)
    partitions: int | None = None
    clock: Callable[[], float] = time.monotonic
    _looking: asyncio.Task[None] | None = field(default=None, init=False)
    _found: list[Component] = field(default_factory=list, init=False)
    _found_at: float = field(default=float("-inf"), init=False)

    async def now(self) -> list[Component]:
        """Return the parts, in a list of the caller's own."""
        if self.clock() - self._found_at >= KEPT_S:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            # One of the waiting requests may be cancelled; the others still wait.
            await asyncio.shield(self._looking)
        return [dict(one) for one in self._found]

    async def _look(self) -> None:
        local = await asyncio.to_thread(read_status_files, self.directory)
        kafka = await kafka_component(self.config, self.partitions)
        self._found = [kafka, *(component_of(process) for process in merged(self.heartbeats.shown(), local))]
        self._found_at = self.clock()


async def kafka_component(config: KafkaSettings, partitions: int | None = None) -> Component:
    """Return the brokers of the cluster as one component; their process is not always on this machine.

    Args:
        config: how to connect to them.
        partitions: the number of partitions of the executions.
    """
    try:
        addresses = await broker_addresses(config)
    except LogError:
        addresses = []
    return {
        "name": "kafka",
        "role": "kafka",
        "host": None,
        "pid": None,
        "state": "ready" if addresses else "unreachable",
        "address": ",".join(addresses) or config.bootstrap_servers,
        "at": rfc3339(time.time_ns() // 1_000_000),
        "lag_records": None,
        "partitions": partitions,
        "reason": None,
        "probe_address": None,
    }


def component_of(process: ProcessHealth) -> Component:
    """A process as the API shows it."""
    heartbeat = process.heartbeat
    return {
        "name": heartbeat.name,
        "role": heartbeat.role,
        "host": heartbeat.host or None,
        "pid": heartbeat.pid,
        "state": process.state,
        "address": heartbeat.address,
        "at": heartbeat.at,
        "lag_records": heartbeat.lag_records,
        "partitions": None,
        "reason": _reason(process),
        "probe_address": heartbeat.probe,
    }


def _reason(process: ProcessHealth) -> str | None:
    """Why a process does not do its work; also, while it works, that a disk is short of room or a clock is off."""
    if process.state in (SILENT, STALLED):
        return process.fault()
    disk = "" if process.heartbeat.disk in process.heartbeat.reason else process.heartbeat.disk
    return "; ".join(filter(None, (process.heartbeat.reason, disk, process.heartbeat.clock))) or None


def merged(heartbeats: Sequence[ProcessHealth], local: Sequence[ProcessHealth]) -> list[ProcessHealth]:
    """Merge the processes known by heartbeats and by this machine's status files; the newer information counts."""
    newest = {process.heartbeat.key: process for process in heartbeats}
    for process in local:
        known = newest.get(process.heartbeat.key)
        if known is None or process.age_s < known.age_s:
            newest[process.heartbeat.key] = process
    return sorted(newest.values(), key=lambda process: process.heartbeat.key)


def read_status_files(directory: Path) -> list[ProcessHealth]:
    """Read the status files of this machine's processes; one that is being replaced or is invalid is left out."""
    found = (read_heartbeat(path) for path in sorted(directory.glob("*.json")) if path.stem != "stack")
    return [ProcessHealth(*one) for one in found if one is not None]
