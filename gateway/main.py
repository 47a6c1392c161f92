"""The gateway's process: `run(settings)` serves until SIGTERM, or until a part fails for good."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import uvicorn
import uvloop

from gateway.app import create_app
from gateway.server.http import BoundedHttp
from gateway.server.websocket import BoundedWebSocket
from gateway.service.assembly import assemble
from gateway.service.current_metrics import keep_current
from gateway.service.gateway import Gateway
from gateway.service.readiness import own_problems
from gateway.settings import GatewaySettings, read_settings
from gateway.shutdown import ANSWER_GRACE_S, WRITE_GRACE_S
from gateway.sockets.ws import FRAME_MAX_BYTES
from host.errors import EXIT_USAGE, AddressTaken, OperatorError, end_process
from host.open_files import allow_many_sockets
from vitals import tracing
from vitals.heartbeat import READY, STOPPING
from vitals.tracing import also_by_otlp, sends_metrics

logger = logging.getLogger(__name__)

READY_PAUSE_S = 0.05
# A stop is promised within 5 s: what does not end by itself is left after this, and the last spans and metrics have
# the rest.
END_WITHIN_S = 4.4
LAST_SPANS_WITHIN_S = 0.4
LEAVE_WITHIN_S = 0.1
STOP_GRACE_S = 5
BACKLOG = 2_048
GC_THRESHOLDS = (20_000, 20, 50)


def run(settings: Mapping[str, str]) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        settings: docs/architecture.md, Processes.

    Raises:
        SystemExit: with one sentence for the operator, if the gateway cannot start or continue.
    """
    try:
        read = read_settings(settings)
        allow_many_sockets()
        uvloop.run(serve(read))
    except OperatorError as error:
        end_process(error, error.exit_code)
    except OSError as error:
        end_process(error, EXIT_USAGE)


async def serve(settings: GatewaySettings) -> None:
    """Serve until a signal arrives.

    Raises:
        Exception: the error of the part that failed for good.
    """
    listening = listen(settings.host, settings.port)
    gateway = assemble(settings)
    sockets = [listening, *((listen(settings.host, settings.bridge_port),) if settings.bridge_port else ())]
    gateway.port = listening.getsockname()[1]
    address = f"http://{settings.host}:{gateway.port}"
    server = GatewayServer(gateway)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, server, settings)
    gateway.status.address = address
    # A supervisor that reads this heartbeat may send a signal from then on.
    gateway.heartbeat_sender.start()
    serving = asyncio.create_task(server.serve(sockets))
    starting = asyncio.create_task(_start(gateway, address))
    failing = asyncio.create_task(gateway.tasks.wait_failed())
    try:
        await asyncio.wait({serving, failing, starting}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done() and starting.exception() is None:
            await asyncio.wait({serving, failing}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.stop()
        starting.cancel()
        await serving
        failing.cancel()
        await gateway.stop()
        gateway.status.set_state(STOPPING)
        await asyncio.to_thread(gateway.heartbeat_sender.stop)
        if settings.status_file is not None:
            settings.status_file.unlink(missing_ok=True)
    with suppress(asyncio.CancelledError):
        await starting
    if gateway.tasks.failure is not None:
        raise gateway.tasks.failure


def _stop(server: GatewayServer, settings: GatewaySettings) -> None:
    """Stop in time, even if a thread hangs on a disk or a server: Python would wait for that thread."""
    server.stop()
    ending = threading.Timer(END_WITHIN_S, _end_now, (settings,))
    ending.daemon = True
    ending.start()


def _end_now(settings: GatewaySettings) -> None:
    held = ", ".join(sorted(thread.name for thread in threading.enumerate() if not thread.daemon))
    logger.warning(
        "the gateway did not end within %g s and is ended now; threads still running: %s", END_WITHIN_S, held
    )
    try:
        # By threads of its own and for a limited time: anything else of this process may hang. Does nothing if the
        # orderly end has come so far, and waits for a collector.
        tracing.end(LAST_SPANS_WITHIN_S)
    finally:
        # By a thread: the disk can be what hangs.
        last = threading.Thread(target=_leave, args=(settings.status_file,), name="last", daemon=True)
        last.start()
        last.join(LEAVE_WITHIN_S)
        os._exit(0)


def _leave(status_file: Path | None) -> None:
    if status_file is not None:
        status_file.unlink(missing_ok=True)
    logging.shutdown()


def listen(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; port 0 picks a free one.

    Raises:
        AddressTaken: another program uses it, or the host is not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise AddressTaken(
            f"{host}:{port} cannot be listened on ({error}): free it, or choose another port"
        ) from error
    return listening


def server_config(gateway: Gateway) -> uvicorn.Config:
    """Return the configuration of the HTTP server."""
    bounds = gateway.settings.limits.bounds
    return uvicorn.Config(
        create_app(gateway),
        loop="none",
        http=partial(BoundedHttp, bounds=bounds, client_connections=gateway.client_connections),  # type: ignore[arg-type]
        ws=partial(BoundedWebSocket, bounds=bounds),  # type: ignore[arg-type]
        ws_max_size=FRAME_MAX_BYTES,
        ws_per_message_deflate=False,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=STOP_GRACE_S,
        log_level=server_log_level(gateway.settings.log_level),
    )


def server_log_level(level: str) -> str:
    """Return the HTTP server's log level: at DEBUG it would log the content of WebSockets, including tokens."""
    return "info" if logging.getLevelNamesMapping().get(level.upper(), 0) < logging.INFO else level.lower()


class GatewayServer(uvicorn.Server):
    """A server that leaves signals to the process, which stops it, and that answers waiting requests when stopped."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(server_config(gateway))
        self.gateway = gateway

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle no signals."""
        yield

    def stop(self) -> None:
        """Answer the requests under way, then end."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no connections, close idle ones, and return when all other requests were answered."""
        leaving = asyncio.create_task(self._leave())
        try:
            await super().shutdown(sockets)
        finally:
            leaving.cancel()
        with suppress(asyncio.CancelledError):
            await leaving

    async def _leave(self) -> None:
        # The steps are those of gateway/shutdown.py.
        self.gateway.begin_shutdown()
        await asyncio.sleep(ANSWER_GRACE_S)
        self.gateway.give_up()
        await asyncio.sleep(WRITE_GRACE_S)
        self.gateway.shutdown.give_up()


async def _start(gateway: Gateway, address: str) -> None:
    await gateway.start()
    if sends_metrics():
        also_by_otlp(gateway.metrics.registry)
        gateway.tasks.spawn(keep_current(gateway))
    # The present objects stay alive: the collector need not examine them again and again.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    while problems := await own_problems(gateway):
        logger.debug("not ready: %s", problems)
        await asyncio.sleep(READY_PAUSE_S)
    gateway.status.set_state(READY)
    gateway.heartbeat_sender.write()
    logger.info("the gateway is ready at %s", address)
