"""The gRPC role: reads the settings, serves until SIGTERM or SIGINT, and ends with an exit code."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping

from gateway.rpc.serving import serving
from gateway.rpc.settings import read_rpc_settings
from host.errors import OperatorError, end_process
from host.open_files import allow_many_sockets
from vitals.health_reporting import HealthReporter, health_reporting
from vitals.heartbeat import READY

ROLE = "grpc"


def run(settings: Mapping[str, str]) -> None:
    """Serve gRPC until SIGTERM or SIGINT.

    Args:
        settings: docs/architecture.md, Processes.

    Raises:
        SystemExit: with one sentence for the operator, if it cannot start.
    """
    try:
        allow_many_sockets()
        with health_reporting(settings, ROLE) as health:
            asyncio.run(_serve(settings, health))
    except OperatorError as error:
        end_process(error, error.exit_code)


async def _serve(settings: Mapping[str, str], health: HealthReporter) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with serving(read_rpc_settings(settings)) as address:
        health.set_state(READY, address)
        updating = asyncio.create_task(health.keep_updating(lambda: None))
        await stopping.wait()
        updating.cancel()
