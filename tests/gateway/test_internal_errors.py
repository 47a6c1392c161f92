"""What a caller gets when something fails unexpectedly: an answer like any other, on a connection that stays."""

from __future__ import annotations

import http.client
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.app import SECURITY_HEADERS, Observed
from gateway.metrics import Metrics
from gateway.rest.internal_errors import InternalErrors
from tests.gateway.test_server_bounds import BOUNDS, WITHIN_S, served


async def _fail(request: Request) -> Response:
    raise KeyError("hunter2")


async def _fail_midway(request: Request) -> Response:
    async def parts() -> Any:
        yield b"begun"
        raise KeyError("hunter2")

    return StreamingResponse(parts())


async def _work(request: Request) -> Response:
    return PlainTextResponse("well")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def connection(metrics: Metrics) -> Iterator[http.client.HTTPConnection]:
    routes = [Route("/fail", _fail), Route("/midway", _fail_midway), Route("/work", _work)]
    # In the order of `create_app`, each inside the one before.
    middleware = [Middleware(Observed, metrics=metrics), Middleware(InternalErrors)]
    app = Starlette(routes=routes, middleware=middleware)
    with served(BOUNDS, app) as (port, _):
        opened = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)
        yield opened
        opened.close()


def test_unexpected_error_is_answered_with_500_on_a_connection_that_stays(
    connection: http.client.HTTPConnection, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        connection.request("GET", "/fail")
        answer = connection.getresponse()
        body = answer.read().decode()
    used = connection.sock
    assert (answer.status, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "hunter2" not in body
    assert {name.decode() for name, _ in SECURITY_HEADERS} <= {name.lower() for name in answer.headers}
    assert [record.getMessage() for record in caplog.records] == ["GET /fail failed"]
    assert b'placet_gateway_requests_total{method="GET",status="500"} 1.0' in generate_latest(
        metrics.registry
    )

    connection.request("GET", "/work")
    assert connection.getresponse().read() == b"well"
    assert connection.sock is used


def test_unexpected_error_in_the_middle_of_an_answer_ends_the_connection(
    connection: http.client.HTTPConnection,
) -> None:
    connection.request("GET", "/midway")
    answer = connection.getresponse()
    assert answer.status == 200
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        answer.read()
