"""A process of a stack, and the states that a stack and its processes are in."""

from __future__ import annotations

from dataclasses import dataclass

STARTING, READY, STOPPING, STOPPED, FAILED = "starting", "ready", "stopping", "stopped", "failed"
# The supervisor's own state while a part that was ready is not.
DEGRADED = "degraded"
BACKING_OFF = "restarting"
KAFKA = "kafka"


@dataclass(frozen=True)
class Component:
    """One process of a stack.

    Attributes:
        name: Its role, or `kafka`.
        pid: Its process id; None when it does not run.
        state: starting, ready, stalled, silent, restarting or stopped.
        address: Where it listens, if it does.
        restarts: How often the supervisor had to start it again.
        reason: Why it does not do its work although it runs.
        probe_address: Where its probe listens; None for Kafka, and for the gateway, which serves its own.
    """

    name: str
    pid: int | None
    state: str
    address: str | None = None
    restarts: int = 0
    reason: str = ""
    probe_address: str | None = None
