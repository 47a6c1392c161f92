"""The health of a tool is looked at in a process that starts other programs."""

from __future__ import annotations

import subprocess
import sys

# Calls of gRPC are under way, or just given up, whenever a child is started.
PROGRAM = """
import asyncio

from ops import process
from ops.ports import free_port
from ops.tools.health import watch_health

STARTS, WATCHES = 100, 8


async def main():
    port = free_port()
    for number in range(STARTS):
        watching = [asyncio.create_task(watch_health(port, lambda state: None)) for _ in range(WATCHES)]
        await asyncio.sleep(0.002 * (number % 5))
        for one in watching:
            one.cancel()
        await asyncio.sleep(0)
        process.spawn(["true"]).wait()


asyncio.run(main())
"""


def test_start_of_a_child_runs_no_handlers_of_grpc() -> None:
    """They end or block the process now and then; where they run, they say so when calls are under way."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
