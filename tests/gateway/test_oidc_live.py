"""People of an identity provider at a whole gateway: they decide, and their tokens end."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.responses import Response
from websockets.exceptions import ConnectionClosed

from tests.gateway.another import another_gateway
from tests.gateway.conftest import Doors
from tests.gateway.provider import AUDIENCE, PRIVATE, Provider, part
from tests.gateway.sockets import open_socket
from tests.sdk.scripted import serving

pytestmark = [pytest.mark.stack, pytest.mark.broker]


class Site:
    """A gateway that believes a provider beside the local issuer."""

    def __init__(self, url: str, provider: Provider, client: httpx.AsyncClient) -> None:
        self.url = url
        self.provider = provider
        self.client = client

    async def call(self, method: str, path: str, token: str, body: Any = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"}
        return await self.client.request(method, f"{self.url}{path}", json=body, headers=headers)


@pytest.fixture
async def site(doors: Doors) -> AsyncIterator[Site]:
    provider = Provider()
    async with serving(provider.script), httpx.AsyncClient(timeout=20) as client:
        oidc = {"oidc_issuer": provider.url, "oidc_audience": AUDIENCE}
        async with another_gateway(doors, more=oidc) as url:
            yield Site(url, provider, client)


async def test_person_of_the_provider_approves_a_hold(site: Site, doors: Doors) -> None:
    bot = doors.token("bot", "agent", agent="billing")
    started = await site.call("POST", "/v1/executions", bot, {})
    path = f"/v1/executions/{started.json()['execution_id']}/tool-calls"
    body = {"call_id": "c1", "tool": "send_money", "arguments": {"amount": 5}}
    held = (await site.call("POST", f"{path}?wait=0", bot, body)).json()
    assert held["status"] == "held"
    person = site.provider.token("ES256", claims={"sub": "auth0|4711"})
    hold = (await site.call("GET", f"/v1/holds/{held['hold_id']}", person)).json()
    word = {"decision": "approve", "digest": hold["digest"]}
    decided = await site.call("POST", f"/v1/holds/{held['hold_id']}/decision", person, word)
    assert (decided.status_code, decided.json()["status"]) == (200, "resolved"), decided.text
    call = (await site.call("GET", f"{path}/c1?wait=10", bot)).json()
    assert (call["status"], call["decision"]["by"]) == ("released", "auth0|4711")
    assert call["grant"]["token"]
    # A reviewer of the provider may see the call, and not use it.
    seen = (await site.call("GET", f"{path}/c1", person)).json()
    assert (seen["status"], seen["grant"]["token"]) == ("released", None)
    used = await site.call("POST", f"{path}/c1/consume", person, {"digest": call["digest"]})
    assert (used.status_code, used.json()["code"]) == (403, "not_authorised")


async def test_forged_tokens_of_the_provider_are_unauthenticated(site: Site) -> None:
    provider = site.provider
    payload = provider.token().split(".")[1]
    public = PRIVATE["RS256"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head = f"{part({'alg': 'HS256', 'typ': 'JWT', 'kid': 'RS256'})}.{payload}"
    mac = base64.urlsafe_b64encode(hmac.new(public, head.encode(), hashlib.sha256).digest()).rstrip(b"=")
    forged = [
        f"{part({'alg': 'none', 'typ': 'JWT', 'kid': 'RS256'})}.{payload}.",
        f"{head}.{mac.decode()}",
        *(provider.token(drop=claim) for claim in ("exp", "aud", "iss")),
        provider.token(claims={"aud": "placet"}),
        provider.token(claims={"roles": ["system"]}),
    ]
    for token in forged:
        answer = await site.call("GET", "/v1/holds", token)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert (await site.call("GET", "/v1/holds", provider.token())).status_code == 200


async def test_token_of_another_tenant_sees_nothing_of_this_one(site: Site, doors: Doors) -> None:
    bot = doors.token("bot", "agent", agent="billing")
    execution_id = (await site.call("POST", "/v1/executions", bot, {})).json()["execution_id"]
    path = f"/v1/executions/{execution_id}"
    assert (await site.call("GET", path, site.provider.token())).status_code == 200
    stranger = site.provider.token(claims={"tenant": "other"})
    assert (await site.call("GET", path, stranger)).status_code == 404


async def test_socket_ends_when_the_providers_token_expires(site: Site) -> None:
    token = site.provider.token(claims={"exp": site.provider.claims(lifetime_s=2)["exp"]})
    async with open_socket(site.url, token) as socket:
        await socket.subscribe("holds")
        with pytest.raises(ConnectionClosed) as closed:
            await socket.next("nothing more comes")
    received = closed.value.rcvd
    assert received is not None
    assert (received.code, received.reason) == (4401, "the token has expired: get a new one")


async def test_provider_away_is_unavailable_at_every_door(site: Site) -> None:
    site.provider.answer = Response(status_code=500)
    answer = await site.call("GET", "/v1/holds", site.provider.token())
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.headers["retry-after"] == "10"
    with pytest.raises(ConnectionClosed) as closed:
        async with open_socket(site.url, site.provider.token()) as socket:
            await socket.receive()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1013


async def test_provider_without_a_usable_key_is_told_by_readiness_and_gives_nobody(site: Site) -> None:
    said = f"this gateway: the key set of {site.provider.url} has no key that can be used"
    for path in ("/readyz?part=gateway", "/readyz"):
        assert said not in str((await site.client.get(f"{site.url}{path}")).json())
    site.provider.keys = []
    answer = await site.call("GET", "/v1/holds", site.provider.token())
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    for path in ("/readyz?part=gateway", "/readyz"):
        warnings = (await site.client.get(f"{site.url}{path}")).json()["warnings"]
        assert [warning for warning in warnings if warning.startswith(said)], path
