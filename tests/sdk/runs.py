"""An execution against a scripted gateway, for the tests of gated functions."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import placet
from placet import AsyncPlacet, Placet
from placet.execution import AsyncExecution
from placet.sync import RunningExecution
from tests.sdk.desk import Desk
from tests.sdk.scripted import QUICK, Scripted, serving
from tests.sdk.threaded import serving_thread


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


@contextmanager
def running_blocking(desk: Desk) -> Iterator[RunningExecution]:
    with (
        serving_thread(desk.scripted()) as script,
        Placet(script.url, token="t", agent="billing-bot", patience=QUICK) as client,
        client.execution(id="run") as run,
    ):
        yield run
