"""A role's own small HTTP server: `/healthz`, `/readyz` and `/metrics`, in a thread of its own.

For liveness and readiness probes and for Prometheus. It reveals nothing about tenants, accepts no input, and listens
on the loopback address by default.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.exposition import ThreadingWSGIServer

from host.errors import AddressTaken
from vitals.heartbeat import HUNG_AFTER_S
from vitals.process_status import ProcessStatus

LOOPBACK = "127.0.0.1"
IDLE_S = 5.0
StartResponse = Callable[[str, list[tuple[str, str]]], object]


class _Handler(WSGIRequestHandler):
    # The timeout of an idle connection.
    timeout = IDLE_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: probes come every few seconds."""


class Probe:
    """Serves the status of one process until `stop`."""

    def __init__(
        self, status: ProcessStatus, registry: CollectorRegistry, host: str = LOOPBACK, port: int = 0
    ) -> None:
        """Listen.

        Args:
            status: the process's status.
            registry: the role's metrics.
            host: the address to listen on.
            port: its port; 0 for any free one.

        Raises:
            AddressTaken: another program uses the address, or it is not an address of this machine.
        """
        self._status = status
        self._registry = registry
        try:
            self._server = make_server(host, port, self._answer, ThreadingWSGIServer, _Handler)
        except OSError as error:
            raise AddressTaken(
                f"The probe cannot listen on {host}:{port} ({error.strerror or error}): free the port, or give "
                "another with --probe-port."
            ) from error
        self.address = f"http://{host}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="probe", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join(IDLE_S)
        self._server.server_close()

    def _answer(self, environ: Mapping[str, Any], start: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return _said(start, "405 Method Not Allowed", {"status": "GET only"})
        if path == "/healthz":
            return self._health(start)
        if path == "/readyz":
            return _readiness(start, self._status.heartbeat().problems())
        if path == "/metrics":
            start("200 OK", [("Content-Type", CONTENT_TYPE_LATEST)])
            return [generate_latest(self._registry)]
        return _said(start, "404 Not Found", {"status": "no such page"})

    def _health(self, start: StartResponse) -> Iterable[bytes]:
        hung_ms = self._status.heartbeat().loop_age_ms
        if hung_ms > HUNG_AFTER_S * 1000:
            return _readiness(start, [f"its work has been stuck for {hung_ms // 1000} s"])
        return _said(start, "200 OK", {"status": "ok"})


def _readiness(start: StartResponse, problems: list[str]) -> Iterable[bytes]:
    status = "503 Service Unavailable" if problems else "200 OK"
    return _said(start, status, {"status": "not ready" if problems else "ready", "problems": problems})


def _said(start: StartResponse, status: str, body: Mapping[str, Any]) -> Iterable[bytes]:
    start(status, [("Content-Type", "application/json"), ("Cache-Control", "no-store")])
    return [json.dumps(body).encode()]
