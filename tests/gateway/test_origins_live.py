"""What a browser's page of another origin may do: nothing, unless its origin was named with --origin."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from host.errors import SettingsRefused
from tests.gateway.another import another_gateway, settings_beside
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import raw_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]

DESK, SHOP, FOREIGN = "https://desk.example.com", "http://127.0.0.1:3000", "https://evil.example"
HEADERS = (
    "authorization,content-type,idempotency-key,last-event-id,placet-project,traceparent,tracestate,baggage"
)
PATHS = ("/v1/holds", "/v1/holds/h1/decision", "/v1/events/stream", "/.well-known/jwks.json")


def preflight(
    client: httpx.Client, url: str, origin: str, method: str, headers: str = HEADERS
) -> httpx.Response:
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": headers,
    }
    return client.options(url, headers=asked)


async def test_page_of_a_named_origin_may_use_every_door_and_no_other_may(doors: Doors, anna: Caller) -> None:
    async with another_gateway(doors, more={"gateway_origins": f"{DESK} {SHOP}"}) as url:
        await asyncio.to_thread(_named_origins, url, anna.token)
        await asyncio.to_thread(_foreign_origin, url, anna.token)


async def test_page_of_a_proxys_public_address_may_open_a_websocket_if_it_is_named(
    doors: Doors, anna: Caller
) -> None:
    with pytest.raises(InvalidStatus):
        async with raw_socket(doors.url, origin=DESK):
            pass
    async with (
        another_gateway(doors, more={"gateway_origins": DESK}) as url,
        raw_socket(url, origin=DESK) as connection,
    ):
        await connection.send(json.dumps({"type": "authenticate", "token": anna.token}))
        assert json.loads(await connection.recv())["type"] == "authenticated"


def _named_origins(url: str, token: str) -> None:
    with httpx.Client(timeout=20) as client:
        for origin in (DESK, SHOP):
            for path in PATHS:
                for method in ("GET", "POST", "PUT", "DELETE"):
                    allowed = preflight(client, url + path, origin, method)
                    assert allowed.status_code == 200, (path, method, allowed.text)
                    assert allowed.headers["access-control-allow-origin"] == origin
                    assert "access-control-allow-credentials" not in allowed.headers
                    given = allowed.headers["access-control-allow-headers"].lower()
                    assert all(name in given for name in HEADERS.split(","))
                    assert "Origin" in allowed.headers["vary"]
            headers = {"Origin": origin, "Authorization": f"Bearer {token}"}
            for path in ("/v1/holds?status=open", "/.well-known/jwks.json", "/v1/holds/none"):
                answer = client.get(url + path, headers=headers)
                assert answer.headers["access-control-allow-origin"] == origin, path
                assert "Retry-After" in answer.headers["access-control-expose-headers"]
            with client.stream("GET", f"{url}/v1/events/stream", headers=headers) as stream:
                assert stream.status_code == 200
                assert stream.headers["access-control-allow-origin"] == origin
        refused = client.get(f"{url}/v1/holds", headers={"Origin": DESK})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, DESK)
        other = preflight(client, f"{url}/v1/holds", DESK, "GET", "x-other")
        assert other.status_code == 400


def _foreign_origin(url: str, token: str) -> None:
    with httpx.Client(timeout=20) as client:
        for origin in (FOREIGN, "null", f"{DESK}.evil.example", DESK.upper()):
            refused = preflight(client, f"{url}/v1/holds", origin, "GET")
            assert refused.status_code == 400
            assert "access-control-allow-origin" not in refused.headers
            headers = {"Origin": origin, "Authorization": f"Bearer {token}"}
            answer = client.get(f"{url}/v1/holds", headers=headers)
            assert "access-control-allow-origin" not in answer.headers


def test_without_origins_nothing_is_opened(doors: Doors) -> None:
    refused = preflight(doors.client, f"{doors.url}/v1/holds", DESK, "GET")
    assert refused.status_code == 405
    assert "access-control-allow-origin" not in refused.headers


@pytest.mark.parametrize(
    "origin", ["*", "null", "https://*.example.com", "desk.example.com", "https://a.example/x"]
)
def test_origin_that_is_none_is_refused_at_the_start(doors: Doors, origin: str) -> None:
    with pytest.raises(SettingsRefused, match="not a web origin"):
        settings_beside(doors, more={"gateway_origins": origin})


@pytest.mark.parametrize("path", ["/v1/holds/", "/v1/executions/", "/readyz/"])
def test_no_redirect_is_built_from_what_a_client_calls_us(doors: Doors, anna: Caller, path: str) -> None:
    answer = anna.get(path, headers={"Host": "evil.example"}, follow_redirects=False)
    assert answer.status_code == 404
    assert "evil.example" not in answer.text
    assert "location" not in answer.headers
