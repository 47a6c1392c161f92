"""What runs in a data directory: the supervisor's word, the components' own, and what truly lives."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from ops import process
from ops.config import DataDir
from ops.files import read_json, write_json

STARTING, READY, STOPPING, STOPPED, FAILED = "starting", "ready", "stopping", "stopped", "failed"
BACKING_OFF = "restarting"
KAFKA = "kafka"


@dataclass(frozen=True)
class Component:
    """One process of a stack.

    Attributes:
        name: Its role, or `kafka`.
        pid: Its process id; None when it does not run.
        state: starting, ready, restarting or stopped.
        address: Where it listens, if it does.
        restarts: How often the supervisor had to start it again.
        reason: Why it does not do its work although it runs.
    """

    name: str
    pid: int | None
    state: str
    address: str | None = None
    restarts: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Stack:
    """A stack as its supervisor sees it.

    Attributes:
        state: starting, ready, stopping, stopped or failed.
        pid: The supervisor's process id.
        started: When that process started, in clock ticks since boot; a later one with its id differs.
        url: The gateway's address.
        bootstrap_servers: The Kafka cluster.
        components: Its processes.
        message: Why it failed, in one sentence.
        exit_code: The exit code that goes with the message.
    """

    state: str
    pid: int | None = None
    started: int = 0
    url: str | None = None
    bootstrap_servers: str | None = None
    components: tuple[Component, ...] = ()
    message: str = ""
    exit_code: int = 0


def write_stack(directory: DataDir, stack: Stack) -> None:
    """Tell other processes how the stack is."""
    write_json(directory.state, asdict(stack) | {"at": time.time()})


def read_stack(directory: DataDir) -> Stack:
    """How the stack in a directory is now; a dead supervisor's last word is not believed."""
    written = read_json(directory.state)
    if written is None:
        return Stack(STOPPED)
    written.pop("at", None)
    components = tuple(_observed(Component(**row), directory) for row in written.pop("components"))
    stack = Stack(**written, components=components)
    if stack.state in (STOPPED, FAILED) or process.is_same(stack.pid, stack.started):
        return stack
    gone = tuple(Component(part.name, None, STOPPED) for part in components)
    return Stack(STOPPED, url=stack.url, bootstrap_servers=stack.bootstrap_servers, components=gone)


def role_state(directory: DataDir, name: str, pid: int | None) -> tuple[str, str | None, str]:
    """A role's own word on its state, its address and what hinders it, if it comes from this process."""
    written = read_json(directory.status(name))
    if written is None or written.get("pid") != pid:
        return STARTING, None, ""
    return (
        str(written.get("state", STARTING)),
        written.get("address") or None,
        str(written.get("reason") or ""),
    )


def as_protocol(stack: Stack) -> dict[str, Any]:
    """The answer of `placet status --json`; the sign-in link and gRPC come with the console and gRPC."""
    return {
        "state": stack.state,
        "url": stack.url,
        "sign_in_url": None,
        "bootstrap_servers": stack.bootstrap_servers,
        "grpc_address": None,
        "components": [asdict(part) for part in stack.components],
    }


def _observed(part: Component, directory: DataDir) -> Component:
    if part.pid is None or not process.is_alive(part.pid):
        state = BACKING_OFF if part.state == BACKING_OFF else STOPPED
        return replace(part, pid=None, state=state, address=None)
    if part.name == KAFKA:
        return part
    state, address, reason = role_state(directory, part.name, part.pid)
    return replace(part, state=state, address=address, reason=reason)
