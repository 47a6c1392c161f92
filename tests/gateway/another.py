"""A second gateway beside a stack's own, in the test's process: other limits, the same log and views."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from gateway.main import GatewayServer, listen
from gateway.service.assembly import assemble
from gateway.service.readiness import own_problems
from gateway.settings import GatewaySettings, Limits, read_settings
from ops.config import DataDir, load_config
from tests.gateway.conftest import Doors

READY_WITHIN_S = 120.0


def settings_beside(
    doors: Doors,
    limits: Limits | None = None,
    policy_file: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> GatewaySettings:
    """The settings of a gateway of the same stack, on a port of its own; `more` over the stack's own."""
    config = load_config(DataDir(doors.stack.data_dir).config)
    given = {
        **config.settings_for("another", "gateway"),
        "gateway_port": "0",
        "status_file": "",
        **(more or {}),
    }
    settings = read_settings(given)
    return replace(settings, limits=limits or Limits(), policy_file=policy_file)


@asynccontextmanager
async def another_gateway(
    doors: Doors,
    limits: Limits | None = None,
    policy_file: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> AsyncIterator[str]:
    """Its URL, while it runs."""
    settings = settings_beside(doors, limits, policy_file, more)
    gateway = assemble(settings)
    listening = listen(settings.host, settings.port)
    gateway.port = listening.getsockname()[1]
    server = GatewayServer(gateway)
    serving = asyncio.create_task(server.serve([listening]))
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            await gateway.start()
            while await own_problems(gateway):
                await asyncio.sleep(0.05)
        yield f"http://{settings.host}:{gateway.port}"
    finally:
        server.stop()
        await serving
        await gateway.stop()
