"""A running process with its health reporting: its pulse (the status), heartbeat sender and probe."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from vitals.heart import Heart, heart_of
from vitals.metrics import role_registry
from vitals.probe import LOOPBACK, Probe
from vitals.pulse import Pulse, pulse_of
from vitals.word import BEAT_S, STOPPING


@dataclass(frozen=True, slots=True)
class Living:
    """A process that reports its status.

    Attributes:
        pulse: the status, which the process's own work updates.
        registry: its metrics; the role adds its own.
    """

    pulse: Pulse
    registry: CollectorRegistry
    heart: Heart

    def tell(self, state: str, address: str | None = None) -> None:
        """Set the state, and write it to the status file at once if it has changed."""
        if (state, address or self.pulse.address) != (self.pulse.state, self.pulse.address):
            self.pulse.tell(state, address)
            self.heart.write()

    async def feel(self, look: Callable[[], None]) -> None:
        """Call `look`, which updates the pulse's progress, twice per heartbeat until cancelled."""
        while True:
            look()
            self.pulse.touch()
            await asyncio.sleep(BEAT_S / 2)


@contextmanager
def living(settings: Mapping[str, str], role: str) -> Iterator[Living]:
    """Run a heartbeat sender and a probe for the process that a role's settings start.

    Args:
        settings: the role's; the probe listens on `probe_host` and `probe_port`.
        role: its name.

    Raises:
        AddressTaken: another program uses the probe's address.
        SettingsRefused: the Kafka settings cannot be used.
    """
    pulse = pulse_of(settings, role)
    registry = role_registry(pulse)
    heart = heart_of(settings, pulse)
    probe = Probe(
        pulse, registry, settings.get("probe_host") or LOOPBACK, int(settings.get("probe_port") or 0)
    )
    pulse.address = probe.address
    probe.start()
    heart.start()
    try:
        yield Living(pulse, registry, heart)
        pulse.reason = ""
    except Exception as error:
        # The last heartbeat has the reason, for people who cannot read this machine's log files.
        pulse.reason = str(error) or type(error).__name__
        raise
    finally:
        pulse.tell(STOPPING)
        heart.stop()
        probe.stop()
