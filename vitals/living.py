"""Everything that tells of a process, put together: its pulse, its heart and its probe, while it works."""

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
    """A process that tells how it is.

    Attributes:
        pulse: what its own work moves.
        registry: its metrics; the role adds its own.
    """

    pulse: Pulse
    registry: CollectorRegistry
    heart: Heart

    def tell(self, state: str, address: str | None = None) -> None:
        """Say how the process is, at once where somebody waits for it."""
        if (state, address or self.pulse.address) != (self.pulse.state, self.pulse.address):
            self.pulse.tell(state, address)
            self.heart.write()

    async def feel(self, look: Callable[[], None]) -> None:
        """Let `look` tell the pulse how far the work has come, twice in each beat, until cancelled."""
        while True:
            look()
            self.pulse.touch()
            await asyncio.sleep(BEAT_S / 2)


@contextmanager
def living(settings: Mapping[str, str], role: str) -> Iterator[Living]:
    """A heart and a probe for the process that a role's settings start.

    Args:
        settings: of the role; `probe_host` and `probe_port` say where the probe listens.
        role: its name.

    Raises:
        AddressTaken: the probe's address is held by another program.
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
        # The last heartbeat says why, for whoever cannot read the log of this machine.
        pulse.reason = str(error) or type(error).__name__
        raise
    finally:
        pulse.tell(STOPPING)
        heart.stop()
        probe.stop()
