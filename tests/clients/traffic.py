"""Every answer that a gateway gives to a test is held against the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from tests.clients.documents import Documented

# Looked at after a test: in between, the time that it takes would count as the gateway's. Like answers count once.
ANSWERS: dict[tuple[str, str, int, bytes], httpx.Response] = {}


@cache
def _documented() -> Documented:
    # What says what the gateway answers takes a second to import: there may be no answer, as where pytest-xdist
    # only hands out tests.
    from tests.clients.documents import Documented

    return Documented()


def watch_answers() -> None:
    """Have every httpx client of this process keep its answers to be looked at."""
    send, send_async = httpx.Client.send, httpx.AsyncClient.send

    def watched(self: httpx.Client, *args: Any, **more: Any) -> httpx.Response:
        response = send(self, *args, **more)
        if response.is_closed:
            _keep(response)
        return response

    async def watched_async(self: httpx.AsyncClient, *args: Any, **more: Any) -> httpx.Response:
        response = await send_async(self, *args, **more)
        if response.is_closed:
            _keep(response)
        return response

    httpx.Client.send = watched  # type: ignore[method-assign]
    httpx.AsyncClient.send = watched_async  # type: ignore[method-assign]


def _keep(answer: httpx.Response) -> None:
    request = answer.request
    ANSWERS[(request.method, request.url.path, answer.status_code, answer.content)] = answer


@pytest.fixture(autouse=True)
def _answers_are_documented() -> Iterator[None]:
    yield
    if not ANSWERS:
        return
    documented = _documented()
    documented.faults.clear()
    for answer in ANSWERS.values():
        documented.look(answer)
    ANSWERS.clear()
    faults = sorted(set(documented.faults))
    assert faults == [], "\n".join(faults[:20])
