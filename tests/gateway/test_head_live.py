"""HEAD at a gateway that runs: what `wget --spider` and `curl -I` ask."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.gateway.conftest import Caller, Doors
from tests.servers.stack import wait_for

STREAM = "/v1/events/stream?channels=holds"

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def open_streams(doors: Doors) -> float:
    lines = doors.client.get(f"{doors.url}/metrics").text.splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("placet_gateway_sockets ")))


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/readyz?part=gateway", "/metrics", "/openapi.json"])
def test_head_of_what_needs_no_token_is_200(doors: Doors, path: str) -> None:
    head = doors.client.head(f"{doors.url}{path}")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == doors.client.get(f"{doors.url}{path}").headers["content-type"]


def test_head_tells_how_long_the_answer_of_get_is_and_the_connection_goes_on(
    bot: Caller, anna: Caller
) -> None:
    execution_id = bot.execution()
    with closing(HTTPConnection(urlsplit(bot.url).netloc, timeout=30)) as connection:
        _ask_by_both(connection, anna.token, execution_id)


def _ask_by_both(connection: HTTPConnection, token: str, execution_id: str) -> None:
    for path, status in (
        (f"/v1/executions/{execution_id}", 200),
        ("/v1/executions/none", 404),
        (STREAM, 200),
        (f"/v1/executions/{execution_id}/cancel", 405),
    ):
        for method in ("HEAD", "GET"):
            if (method, path) == ("GET", STREAM):
                continue
            connection.request(method, path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == status, (method, path)
            assert method == "GET" or body == b""
        if path != STREAM:
            assert int(answer.headers["content-length"]) == len(body)
    assert answer.headers["allow"] == "POST"


def test_head_of_a_stream_opens_none(doors: Doors, anna: Caller) -> None:
    before = open_streams(doors)
    for _ in range(5):
        assert anna.call("HEAD", STREAM).status_code == 200
    wait_for(lambda: open_streams(doors), lambda now: now <= before, 10)
