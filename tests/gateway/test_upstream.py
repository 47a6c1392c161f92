"""The gateway behind the gRPC role: its address, and what the log says while it is not ready."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import aclosing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gateway.rpc.upstream import Upstream
from host.outgoing_tls import CA_FILE
from ops.ports import free_port
from tests.servers.authority import make_authority, serving_tls
from tests.servers.threaded import serving


class Gateway(ThreadingHTTPServer):
    """Answers /readyz with a status that a test sets, and all else with 404."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Gateway

    def do_GET(self) -> None:
        self.send_response(self.server.status if self.path == "/readyz" else 404)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return None


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    server = Gateway()
    with serving(server):
        yield server


async def test_address_with_a_slash_at_its_end_is_the_same(gateway: Gateway) -> None:
    for url in (gateway.url, f"{gateway.url}/"):
        async with aclosing(Upstream(url)) as upstream:
            assert await upstream.is_ready()


async def test_reason_is_told_once_until_another_or_a_ready_gateway(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with aclosing(Upstream(gateway.url, told_after_s=0.0)) as upstream:
            for status in (200, 503, 503, 502, 200, 503):
                gateway.status = status
                assert await upstream.is_ready() == (status == 200)
    not_ready = "the gateway is not ready, so no health check says SERVING: HTTP status"
    told = [f"{not_ready} 503", f"{not_ready} 502", "the gateway is ready", f"{not_ready} 503"]
    assert caplog.messages == told


async def test_gateway_that_starts_with_the_others_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    async with aclosing(Upstream(f"http://127.0.0.1:{free_port()}", told_after_s=3600.0)) as upstream:
        assert not await upstream.is_ready()
    assert caplog.messages == []


async def test_certificate_that_is_not_trusted_is_told(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CA_FILE, raising=False)
    with serving_tls(make_authority(tmp_path)) as server:
        async with aclosing(Upstream(server.url, told_after_s=0.0)) as upstream:
            assert not await upstream.is_ready()
    (told,) = caplog.messages
    assert "CERTIFICATE_VERIFY_FAILED" in told
