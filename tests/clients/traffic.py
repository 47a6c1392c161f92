"""Every answer that a gateway gives to a test is held against the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.clients.documents import Documented

DOCUMENTED = Documented()


def watch_answers() -> None:
    """Have every httpx client of this process show its answers."""
    send, send_async = httpx.Client.send, httpx.AsyncClient.send

    def watched(self: httpx.Client, *args: Any, **more: Any) -> httpx.Response:
        response = send(self, *args, **more)
        if response.is_closed:
            DOCUMENTED.look(response)
        return response

    async def watched_async(self: httpx.AsyncClient, *args: Any, **more: Any) -> httpx.Response:
        response = await send_async(self, *args, **more)
        if response.is_closed:
            DOCUMENTED.look(response)
        return response

    httpx.Client.send = watched  # type: ignore[method-assign]
    httpx.AsyncClient.send = watched_async  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def _answers_are_documented() -> Iterator[None]:
    DOCUMENTED.faults.clear()
    yield
    faults = sorted(set(DOCUMENTED.faults))
    assert faults == [], "\n".join(faults[:20])
