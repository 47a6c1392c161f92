"""The health service of gRPC (`grpc.health.v1`), which anybody may ask.

That of grpcio-health-checking has no `List`, and holds a lock while it sends to a watcher: one that takes nothing
would freeze the states of all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.rpc.metadata import Context
from gateway.rpc.statuses import end

States = health_pb2.HealthCheckResponse
# The stubs of its types do not know the messages of `List`.
_messages: Any = health_pb2


class Health(health_pb2_grpc.HealthServicer):
    """Tells one state for all services, and for the server as a whole, whose name is empty."""

    def __init__(self, services: Iterable[str]) -> None:
        """Begin as a server that does not serve yet."""
        self._names = frozenset(("", *services))
        self._is_ready = False
        self._changed = asyncio.Event()

    def tell(self, *, is_ready: bool) -> None:
        """Set the state, and wake those who watch it."""
        if is_ready != self._is_ready:
            self._is_ready = is_ready
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> health_pb2.HealthCheckResponse:
        """Tell the state of a service; NOT_FOUND for an unknown one."""
        if request.service not in self._names:
            await end(context, grpc.StatusCode.NOT_FOUND, "no such service", ())
        return self._state_of(request.service)

    async def List(self, request: Any, context: Context) -> Any:
        """Tell the states of all services."""
        return _messages.HealthListResponse(statuses={name: self._state_of(name) for name in self._names})

    async def Watch(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        """Tell the state of a service now and whenever it changes; that of an unknown one is SERVICE_UNKNOWN."""
        told = None
        while True:
            changed, state = self._changed, self._state_of(request.service)
            if state != told:
                yield state
                told = state
            await changed.wait()

    def _state_of(self, service: str) -> health_pb2.HealthCheckResponse:
        if service not in self._names:
            return States(status=States.SERVICE_UNKNOWN)
        return States(status=States.SERVING if self._is_ready else States.NOT_SERVING)
