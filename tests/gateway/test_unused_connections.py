"""How long a connection is kept between two requests."""

from __future__ import annotations

import asyncio
from time import monotonic

import httpx

from gateway.server.bounds import Bounds
from tests.gateway.test_server_bounds import GET, WITHIN_S, connected, served

# How long nginx keeps a connection to a server behind it (`keepalive_timeout` of an upstream).
NGINX_S = 60.0


async def test_connection_that_is_not_used_is_kept_for_its_time_and_then_closed() -> None:
    bounds = Bounds(idle_s=1)
    with served(bounds) as (port, _):
        async with connected(port) as (reader, writer):
            async with asyncio.timeout(WITHIN_S):
                for _ in range(2):
                    writer.write(GET + b"\r\n")
                    head = await reader.readuntil(b"\r\n\r\n")
                    await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
                    answered = monotonic()
                assert await reader.read() == b""
    assert bounds.idle_s * 0.9 < monotonic() - answered < 3 * bounds.idle_s


def test_connections_are_kept_longer_than_common_clients_and_proxies_keep_them() -> None:
    # Whoever lets go first loses nothing: where the server does, a request may be on its way.
    httpx_s = httpx.Limits().keepalive_expiry or 0.0
    assert Bounds().idle_s > max(httpx_s, NGINX_S)
