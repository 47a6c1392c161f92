"""The metrics of a gateway that are read from its state, at a scrape or before they are sent."""

from __future__ import annotations

import asyncio

from gateway.service.gateway import Gateway
from gateway.service.readiness import installation
from vitals.heartbeat import HEARTBEAT_INTERVAL_S


def update_metrics(gateway: Gateway) -> None:
    """Set them as of now."""
    found = gateway.metrics
    if gateway.started:
        live = gateway.gate.live
        found.lag.set(gateway.tail.lag(live.read_through))
        found.waiting.set(len(live.waiters))
        found.open_holds.set(len(live.cache.holds.pinned))
        found.unreadable.set(gateway.tail.unreadable)
        found.forged.set(gateway.tail.forged)
    found.observe_processes(
        gateway.heartbeats.processes(),
        gateway.status.heartbeat(),
        is_ready=not installation(gateway).problems,
    )


async def keep_current(gateway: Gateway) -> None:
    """Set them with each heartbeat, until cancelled: they are sent by a thread that cannot ask for them."""
    while True:
        update_metrics(gateway)
        await asyncio.sleep(HEARTBEAT_INTERVAL_S)
