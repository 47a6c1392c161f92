"""A gateway of a few routes, and gRPC before it: what reaches it is counted, and a task is never answered."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from aiohttp import web
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2_grpc

from gateway.identity.issuer import issue
from gateway.identity.keys import ISSUERS
from gateway.rpc.serving import serving
from gateway.rpc.settings import RpcSettings
from schemas.human_input.v1 import human_input_pb2_grpc as rpc

Code = grpc.StatusCode
Metadata = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class StubGateway:
    """Refuses tokens that say `invalid`; answers everything else.

    Attributes:
        asked: how often each path was asked for; the invalid tokens as `invalid`.
        waiting: requests that wait now.
        hold: what is answered for any hold.
        waits: False: a request that waits is answered at once.
        refuses: the problem with which a question is refused; without one it is asked.
    """

    asked: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    hold: dict[str, Any] = field(default_factory=dict)
    waits: bool = True
    refuses: dict[str, Any] = field(default_factory=dict)

    async def answer(self, request: web.Request) -> web.Response:
        """Answer any request."""
        if request.path == "/readyz":
            return web.json_response({})
        if "invalid" in request.headers.get("authorization", ""):
            self.asked["invalid"] += 1
            return web.json_response({"code": "unauthenticated", "detail": "no"}, status=401)
        self.asked[request.path] += 1
        if request.path == "/v1/tools:run" and self.refuses:
            return web.json_response(self.refuses, status=422)
        if request.path == "/v1/tools:run":
            fields = {"status": {"stringValue": "waiting_for_human"}, "task_id": {"stringValue": "t"}}
            return web.json_response({"result": {"structValue": {"fields": fields}}})
        if not request.path.startswith("/v1/human-input/"):
            return web.json_response(self.hold)
        self.waiting += 1
        try:
            await asyncio.sleep(float(request.query.get("wait", "0")) if self.waits else 0)
        finally:
            self.waiting -= 1
        return web.json_response({"status": "waiting_for_human", "task_id": "t"}, status=202)


@dataclass(slots=True)
class Site:
    """gRPC before a gateway of these tests."""

    gateway: StubGateway
    address: str
    keys_dir: Path

    def by(self, subject: str, tenant: str = "acme") -> Metadata:
        """The metadata of a subject's valid token."""
        token = issue(self.keys_dir, subject, ("agent",), tenant, "books", agent="bot")
        return (("authorization", f"Bearer {token}"),)


@asynccontextmanager
async def rpc_site(
    directory: Path, *, verifies: bool = True, calls_at_once: int = 100
) -> AsyncIterator[Site]:
    """Serve gRPC on a free port; `verifies` is False for a role without the installation's public keys."""
    gateway = StubGateway()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", gateway.answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1_024)
    await site.start()
    host, port = runner.addresses[0][:2]
    issue(directory, "first", ("reviewer",), "acme", "books")
    issuers = directory / ISSUERS if verifies else None
    settings = RpcSettings(f"http://{host}:{port}", "127.0.0.1", 0, None, issuers, None, calls_at_once)
    try:
        async with serving(settings) as address:
            yield Site(gateway, address, directory)
    finally:
        await runner.cleanup()


@dataclass(slots=True)
class Client:
    """The generated clients on one channel."""

    channel: Any
    tool: Any
    tasks: Any
    health: Any
    reflection: Any


@asynccontextmanager
async def client_of(site: Site) -> AsyncIterator[Client]:
    """Open a connection."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with grpc.aio.insecure_channel(site.address, options=options) as opened:
        channel: Any = opened
        yield Client(
            channel,
            rpc.HumanInputToolStub(channel),
            rpc.HumanInputStub(channel),
            health_pb2_grpc.HealthStub(channel),
            reflection_pb2_grpc.ServerReflectionStub(channel),
        )


async def ended(call: Any) -> tuple[Code, str, str]:
    """How a call ended: its status, its detail and the refusal's own code."""
    trailing = dict(await call.trailing_metadata() or ())
    return await call.code(), await call.details() or "", str(trailing.get("placet-code", ""))
