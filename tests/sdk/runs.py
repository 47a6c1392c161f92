"""An execution against a scripted gateway, for the tests of gated functions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import placet
from placet import AsyncPlacet
from placet.execution import AsyncExecution
from tests.sdk.desk import Desk
from tests.sdk.scripted import QUICK, Scripted, serving


@asynccontextmanager
async def running(
    desk: Desk, script: Scripted | None = None, patience: placet.Patience = QUICK
) -> AsyncIterator[AsyncExecution]:
    async with serving(script or desk.scripted()) as served:
        client = AsyncPlacet(served.url, token="t", agent="billing-bot", patience=patience)
        async with client, client.execution(id="invoice-march", request="Pay it") as run:
            yield run


async def pay_in(desk: Desk, send_money: Any) -> Any:
    async with running(desk) as run:
        return await run.gated(send_money)("GB29")


async def never(recipient: str) -> None:
    raise AssertionError("ran")
