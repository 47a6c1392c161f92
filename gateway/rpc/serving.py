"""The gRPC server: its services, their health by the installation's, reflection, TLS, and its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.identity.authenticators import authenticator_of
from gateway.rpc.admission import Admission
from gateway.rpc.callers import Callers
from gateway.rpc.decoding import RECEIVED_MAX_BYTES
from gateway.rpc.guard import Guard
from gateway.rpc.health import Health
from gateway.rpc.keepalive import options as keepalive_options
from gateway.rpc.long_messages import LongMessages
from gateway.rpc.reflecting import add_reflection
from gateway.rpc.servicers import HumanInput, HumanInputTool, waits
from gateway.rpc.settings import RpcSettings
from gateway.rpc.upstream import Upstream
from gateway.settings import Limits
from host.errors import AddressTaken, SettingsRefused
from schemas.human_input.v1 import human_input_pb2 as pb
from schemas.human_input.v1 import human_input_pb2_grpc as rpc

logger = logging.getLogger(__name__)

SERVICES = tuple(service.full_name for service in pb.DESCRIPTOR.services_by_name.values())
HEALTH_SERVICE = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
# Far above what admission permits to calls without a token, and to many subjects together.
CALLS_MAX = 10_000
HEALTH_INTERVAL_S = 1.0
STOP_WITHIN_S = 3.0
METADATA_MAX_BYTES = 16 * 1024
# Open calls of one connection: as many as admission permits to a subject and to strangers, and a proxy opens further
# connections. Without a limit grpcio accepts a stream that its client resets at once, at a hundred times the cost.
STREAMS_LEAST = 256
# Together with the connections to the gateway still fewer than the files that a process may commonly have open.
CONNECTIONS_MAX = 4_096
# One without a call is closed; clients connect again with their next call.
IDLE_S = 600
Options = tuple[tuple[str, int], ...]


@asynccontextmanager
async def serving(settings: RpcSettings) -> AsyncIterator[str]:
    """Serve within this context; yields the address.

    Raises:
        AddressTaken: the port is taken.
        SettingsRefused: the certificate or its key cannot be used.
    """
    async with aclosing(Upstream(settings.gateway_url)) as upstream, aclosing(_callers(settings)) as callers:
        checks = Health(SERVICES)
        guard = Guard(SERVICES, Admission(callers, settings.calls_at_once), waits)
        server = _server(upstream, checks, guard, _options(settings), LongMessages(Limits()))
        port = _bind(server, settings)
        await server.start()
        watching = asyncio.create_task(_watch(upstream, checks))
        try:
            yield settings.address(port)
        finally:
            watching.cancel()
            checks.tell(is_ready=False)
            await server.stop(STOP_WITHIN_S)


def _callers(settings: RpcSettings) -> Callers:
    if settings.issuers is None:
        return Callers(None, None)
    return Callers(authenticator_of(settings.issuers, settings.oidc), settings.issuers)


def _options(settings: RpcSettings) -> Options:
    return (
        ("grpc.max_concurrent_streams", max(STREAMS_LEAST, 2 * settings.calls_at_once)),
        ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
        ("grpc.max_connection_idle_ms", IDLE_S * 1000),
        ("grpc.max_receive_message_length", RECEIVED_MAX_BYTES),
        # By default calls are refused at random from the half of it on, which a long token has.
        ("grpc.max_metadata_size", METADATA_MAX_BYTES),
        ("grpc.absolute_max_metadata_size", METADATA_MAX_BYTES),
        # Two servers on one port would each get some of the calls.
        ("grpc.so_reuseport", 0),
        *keepalive_options(),
    )


def _server(
    upstream: Upstream,
    checks: Health,
    guard: Guard,
    options: Options,
    long_messages: LongMessages,
) -> grpc.aio.Server:
    server = grpc.aio.server(interceptors=(guard,), options=options, maximum_concurrent_rpcs=CALLS_MAX)
    rpc.add_HumanInputToolServicer_to_server(HumanInputTool(upstream, long_messages), server)
    rpc.add_HumanInputServicer_to_server(HumanInput(upstream, long_messages), server)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    add_reflection((*SERVICES, HEALTH_SERVICE), server)
    return server


async def _watch(upstream: Upstream, checks: Health) -> None:
    """Tell clients that the services serve as long as the installation can decide."""
    while True:
        checks.tell(is_ready=await upstream.is_ready())
        await asyncio.sleep(HEALTH_INTERVAL_S)


def _bind(server: grpc.aio.Server, settings: RpcSettings) -> int:
    address = settings.address(settings.port)
    try:
        if settings.tls is None:
            return server.add_insecure_port(address)
        pair = (_read(settings.tls / "tls.key"), _read(settings.tls / "tls.crt"))
        return server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
    except RuntimeError as error:
        raise AddressTaken(f"No gRPC server can listen on {address}: choose another --grpc-port.") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsRefused(f"{path} cannot be read: {error.strerror}.") from error
