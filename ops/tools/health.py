"""The health of a tool, by the standard service of gRPC (grpc.health.v1) on its port."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

# While the health is looked at, the tool is started again: gRPC's handlers of fork() then abort this process now and
# then, or block it for ever (grpc/grpc#37259, #40741). They are for children that use gRPC, which these do not.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

SERVING = "SERVING"
# What is told instead of a status.
NO_ANSWER, NO_SERVICE = "no answer", "no health service"
CHECK_INTERVAL_S = 1.0
# A person waits for the first one.
FIRST_INTERVAL_S = 0.2
CHECK_WITHIN_S = 2.0
_OPTIONS = (
    # The tool is on this machine.
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


async def watch_health(port: int, changed: Callable[[str], None]) -> None:
    """Ask again and again how a tool on this machine is, until cancelled.

    Args:
        port: where it serves gRPC, without TLS.
        changed: takes the first state and each other one: a status such as SERVING or NOT_SERVING, "no answer", or
            "no health service".
    """
    async with grpc.aio.insecure_channel(f"localhost:{port}", options=_OPTIONS) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        state, was_serving = None, False
        while True:
            found = await _state(stub)
            if found != state:
                changed(found)
            state, was_serving = found, was_serving or found == SERVING
            await asyncio.sleep(CHECK_INTERVAL_S if was_serving else FIRST_INTERVAL_S)


async def _state(stub: Any) -> str:
    try:
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=CHECK_WITHIN_S)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return NO_SERVICE
        return "SERVICE_UNKNOWN" if error.code() is grpc.StatusCode.NOT_FOUND else NO_ANSWER
    statuses = health_pb2.HealthCheckResponse.ServingStatus
    return statuses.Name(answer.status) if answer.status in statuses.values() else f"status {answer.status}"
