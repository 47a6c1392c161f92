"""One process of a stack stopped with SIGSTOP, and what everybody who may be asked says of it meanwhile."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from ops.component import DEGRADED
from ops.config import DataDir
from ops.status import Stack, read_stack
from tests.integration.site import Site
from tests.servers.stack import wait_for

TOLD_WITHIN_S = 5.0


@contextmanager
def frozen(site: Site, name: str) -> Iterator[float]:
    """A component that is stopped as a whole, as on a machine that hangs; yields when it was."""
    pid = site.stack.pid(name)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield time.monotonic()
    finally:
        os.kill(pid, signal.SIGCONT)


def until_told(since: float, holds: Callable[[], Any]) -> Any:
    """Ask until it is told; fail when that takes longer than is promised."""
    while not (found := holds()):
        assert time.monotonic() - since < TOLD_WITHIN_S, "not told in time"
        time.sleep(0.05)
    return found


def status_of(site: Site) -> Stack:
    """What `placet status` reads, without the start of a process."""
    return read_stack(DataDir(site.stack.data_dir))


def told_by_status(site: Site, name: str) -> bool:
    """Whether the status says that it is silent, and that the stack is not what it should be."""
    stack = status_of(site)
    part = next(part for part in stack.components if part.name == name)
    return stack.state == DEGRADED and part.state == "silent" and name in stack.message


def readiness(site: Site) -> tuple[int, dict[str, Any]]:
    """What /readyz answers."""
    answer = httpx.get(f"{site.url}/readyz", timeout=TOLD_WITHIN_S)
    return answer.status_code, answer.json()


def component(site: Site, name: str) -> dict[str, Any]:
    """What /v1/components says of one to the installation's owner."""
    headers = {"Authorization": f"Bearer {site.stack.token}"}
    items = httpx.get(f"{site.url}/v1/components", headers=headers, timeout=TOLD_WITHIN_S).json()["items"]
    return next(item for item in items if item["name"] == name)


def metric(site: Site, wanted: str) -> float:
    """One metric of the gateway's, named with its labels."""
    text = httpx.get(f"{site.url}/metrics", timeout=TOLD_WITHIN_S).text
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(wanted + " "))


def until_well(site: Site) -> None:
    """Wait until nobody complains any more."""
    wait_for(lambda: status_of(site).state, lambda state: state == "ready")
    wait_for(lambda: readiness(site), lambda found: found[0] == 200 and not found[1]["warnings"])
