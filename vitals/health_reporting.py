"""A running process with its health reporting: its status, heartbeat sender and probe."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from vitals.heartbeat import HEARTBEAT_INTERVAL_S, STOPPING
from vitals.heartbeat_sender import HeartbeatSender, heartbeat_sender_of
from vitals.metrics import role_registry
from vitals.probe import LOOPBACK, Probe
from vitals.process_status import ProcessStatus, process_status_of
from vitals.tracing import also_by_otlp


@dataclass(frozen=True, slots=True)
class HealthReporter:
    """What a running process reports its health by.

    Attributes:
        status: the status, which the process's own work updates.
        registry: its metrics; the role adds its own.
    """

    status: ProcessStatus
    registry: CollectorRegistry
    sender: HeartbeatSender

    def set_state(self, state: str, address: str | None = None) -> None:
        """Set the state, and write it to the status file at once if it has changed."""
        if (state, address or self.status.address) != (self.status.state, self.status.address):
            self.status.set_state(state, address)
            self.sender.write()

    async def keep_updating(self, update: Callable[[], None]) -> None:
        """Call `update`, which updates the progress in the status, twice per heartbeat until cancelled."""
        while True:
            update()
            self.status.touch()
            await asyncio.sleep(HEARTBEAT_INTERVAL_S / 2)


@contextmanager
def health_reporting(settings: Mapping[str, str], role: str) -> Iterator[HealthReporter]:
    """Run a heartbeat sender and a probe for the process that a role's settings start.

    Args:
        settings: the role's; the probe listens on `probe_host` and `probe_port`.
        role: its name.

    Raises:
        AddressTaken: another program uses the probe's address.
        SettingsRefused: the Kafka settings cannot be used.
    """
    status = process_status_of(settings, role)
    registry = role_registry(status)
    also_by_otlp(registry)
    sender = heartbeat_sender_of(settings, status)
    probe = Probe(
        status, registry, settings.get("probe_host") or LOOPBACK, int(settings.get("probe_port") or 0)
    )
    status.address = status.probe = probe.address
    probe.start()
    sender.start()
    try:
        yield HealthReporter(status, registry, sender)
        status.reason = ""
    except Exception as error:
        # The last heartbeat has the reason, for people who cannot read this machine's log files.
        status.reason = str(error) or type(error).__name__
        raise
    finally:
        status.set_state(STOPPING)
        sender.stop()
        probe.stop()
