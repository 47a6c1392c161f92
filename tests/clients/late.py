"""What stands between an agent and its gateway, and hands on some answers late."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
from starlette.responses import Response

from tests.sdk.scripted import Asked, Scripted
from tests.sdk.threaded import serving_thread

HANDED_ON = ("authorization", "content-type", "idempotency-key")


@dataclass
class LateProxy:
    """A proxy that hands on every answer, those to consumptions so much later.

    Attributes:
        asked: the last word of each path, in order.
    """

    upstream: str
    late_s: float
    asked: list[str] = field(default_factory=list)

    async def http(self, asked: Asked) -> Response:
        step = asked.path.rpartition("/")[2]
        self.asked.append(step)
        headers = {name: value for name, value in asked.headers.items() if name in HANDED_ON}
        async with httpx.AsyncClient(base_url=self.upstream, timeout=70) as client:
            answer = await client.request(
                asked.method, asked.path, params=dict(asked.params), headers=headers, content=asked.body
            )
        if step == "consume":
            await asyncio.sleep(self.late_s)
        return Response(answer.content, answer.status_code, media_type="application/json")


@contextmanager
def late_proxy(upstream: str, late_s: float) -> Iterator[tuple[LateProxy, str]]:
    """A proxy before a gateway, and its address."""
    proxy = LateProxy(upstream, late_s)
    with serving_thread(Scripted(on_http=proxy.http, refuse_sockets=404)) as script:
        yield proxy, script.url
