"""The readiness of this gateway to serve, and of its installation to decide."""

from __future__ import annotations

import asyncio

from gateway.live.heartbeats import Finding
from gateway.live.live import lane_of
from gateway.problems import Problem
from gateway.service.gateway import Gateway
from log.errors import LogError

# With more unread records than this, the displayed state is too old.
LAG_MAX = 10_000
RECONNECT_S = 2.0
VIEWS_WITHIN_S = 2.0


async def own_problems(gateway: Gateway) -> list[str]:
    """Return what keeps a gateway itself from serving; empty if nothing does.

    Anybody may ask, as often as they like: all who ask at once are told the result of one examination.
    """
    if gateway.examination is None or gateway.examination.done():
        gateway.examination = asyncio.create_task(_examine(gateway))
    return await asyncio.shield(gateway.examination)


async def _examine(gateway: Gateway) -> list[str]:
    if gateway.tasks.failure is not None:
        return [str(gateway.tasks.failure)]
    if not gateway.caught_up:
        return [gateway.status.reason or "the gateway is starting"]
    problems = []
    if not gateway.commands.time.known:
        problems.append("Kafka's time is not known yet")
    lag = gateway.tail.lag(gateway.gate.live.read_through)
    if lag > LAG_MAX:
        problems.append(f"{lag} records of the log have not been read yet")
    if not await _can_send(gateway):
        problems.append("commands cannot be sent: there is no connection to Kafka")
    try:
        async with asyncio.timeout(VIEWS_WITHIN_S):
            await gateway.views.read(lambda moment: moment.positions())
    except Problem as problem:
        problems.append(problem.detail)
    except TimeoutError:
        problems.append(f"the views' database has not answered for {VIEWS_WITHIN_S:.0f} s")
    return problems


async def own_finding(gateway: Gateway) -> Finding:
    """Return what keeps a gateway itself from serving, and its other faults."""
    wrong = gateway.commands.time.wrong
    clock = [f"this gateway: {wrong}"] if wrong else []
    return Finding(await own_problems(gateway), [*clock, *_own_warnings(gateway)])


async def all_problems(gateway: Gateway) -> Finding:
    """Return what keeps the gateway, Kafka, the deciders or the projector from working, and the other faults."""
    finding = installation(gateway)
    own = await own_problems(gateway)
    # The heartbeats report this gateway's clock.
    warnings = [*finding.warnings, *_own_warnings(gateway)]
    return Finding([*own, *(text for text in finding.problems if text not in own)], warnings)


def _own_warnings(gateway: Gateway) -> list[str]:
    """Faults of the identity provider's keys, and of the vault, which only sensitive values need."""
    keys = gateway.authenticator.fault()
    return [f"this gateway: {wrong}" for wrong in (keys, gateway.vault_access.damage) if wrong]


def installation(gateway: Gateway) -> Finding:
    """Return what the heartbeats report about Kafka and the other processes."""
    age_ms = gateway.status.heartbeat().kafka_age_ms
    found = gateway.heartbeats.examine(gateway.settings.partitions, None if age_ms is None else age_ms / 1000)
    if not gateway.started:
        return found
    read_through, claims = gateway.gate.live.read_through, gateway.tail.claims()
    first = lane_of(0)
    uncounted_deciders = gateway.heartbeats.uncounted_deciders(read_through[first:], claims[first:])
    return found._replace(problems=[*found.problems, *uncounted_deciders])


async def _can_send(gateway: Gateway) -> bool:
    """Return True if commands can be sent; a lost connection is opened again."""
    if gateway.commands.connected:
        return True
    try:
        async with asyncio.timeout(RECONNECT_S):
            await gateway.commands.open()
    except (LogError, TimeoutError):
        return False
    return True
