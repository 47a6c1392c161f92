"""Case 14 and its kin: what the head of a request may not have, at every door; and what a page elsewhere can do."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import websockets

from tests.integration.doors import Tenant, received, refused, socket
from tests.integration.site import Site

pytestmark = [pytest.mark.stack, pytest.mark.broker]

NAMES = ("token", "access_token", "Authorization", "auth", "key", "apikey", "api_key", "bearer_token", "x")
UNAUTHENTICATED = (401, "unauthenticated")


def log_of(site: Site) -> str:
    """Everything that the gateway has written down."""
    return (site.stack.data_dir / "logs" / "gateway.log").read_text(encoding="utf-8")


async def refusal_of_socket(site: Site, target: str, **more: Any) -> int:
    """The status with which a handshake is refused."""
    with pytest.raises(websockets.InvalidStatus) as denied:
        await websockets.connect(site.url.replace("http", "ws") + target, **more)
    return denied.value.response.status_code


def asked_with(site: Site, headers: list[tuple[str, str]]) -> tuple[int, Any]:
    """Status and body of a request with exactly these headers; a client's own care would make one of two."""
    connection = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=20)
    connection.putrequest("GET", "/v1/holds", skip_host=True, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    return answer.status, told


@pytest.mark.parametrize("name", NAMES)
async def test_case_14_token_in_a_url_is_refused_at_every_door(site: Site, tenant: Tenant, name: str) -> None:
    token = tenant.rita.token
    for query in (f"{name}={token}", f"limit=1&{name}=Bearer+{token}", f"{name}={token.replace('.', '%2e')}"):
        assert refused(tenant.client.get(f"/v1/holds?{query}")) == UNAUTHENTICATED
        assert refused(tenant.rita.get(f"/holds?{query}")) == UNAUTHENTICATED
        assert refused(tenant.client.get(f"/v1/events/stream?{query}")) == UNAUTHENTICATED
        assert refused(tenant.client.get(f"/healthz?{query}")) == UNAUTHENTICATED
        assert await refusal_of_socket(site, f"/v1/ws?{query}") == 401


async def test_case_14_no_token_of_a_url_is_in_any_log(site: Site, tenant: Tenant) -> None:
    token = tenant.token("rita", "reviewer", ttl_s=1234)
    for target in (f"/v1/ws?token={token}", f"/v1/ws?q={token}", f"/v1/ws/{token}"):
        assert await refusal_of_socket(site, target) in (401, 403)
        tenant.client.get(target)
    tenant.client.get(f"/v1/{token}", headers={"Authorization": f"Bearer {token}"})
    query = "?is-in-no-log=1"
    assert await refusal_of_socket(site, f"/v1/ws{query}", origin="http://evil.example") == 403
    url = f"{site.url}/v1/ws{query}".replace("http", "ws")
    async with websockets.connect(url, subprotocols=[websockets.Subprotocol("placet.v1")]) as ws:
        await ws.send(json.dumps({"type": "authenticate", "token": token}))
        assert (await received(ws))["type"] == "authenticated"
    for log in (site.stack.data_dir / "logs").iterdir():
        text = log.read_text(encoding="utf-8", errors="replace")
        for part in (token, *token.split("."), "is-in-no-log"):
            assert part not in text, log.name


@pytest.mark.parametrize(
    "name", ["Authorization", "Idempotency-Key", "Placet-Project", "Host", "Last-Event-ID"]
)
async def test_header_that_stands_twice_is_malformed_at_every_door(
    site: Site, tenant: Tenant, name: str
) -> None:
    once = {"Authorization": f"Bearer {tenant.rita.token}", "Host": urlsplit(site.url).netloc}
    value = {**once, "Placet-Project": "default"}.get(name, "one")
    for second in (value, "another"):
        headers = [(key, given) for key, given in once.items() if key != name]
        headers += [(name, value), (name, second)]
        status, told = asked_with(site, headers)
        assert (status, told["code"]) == (400, "malformed"), name
        assert name.lower() in told["detail"]
    if name != "Host":
        doubled = [(name, value), (name, value)]
        assert await refusal_of_socket(site, "/v1/ws", additional_headers=doubled) == 400


async def test_project_of_the_header_counts_on_a_socket_whose_token_comes_in_its_first_message(
    site: Site, tenant: Tenant
) -> None:
    async with socket(site, additional_headers={"Placet-Project": "elsewhere"}) as ws:
        await ws.send(json.dumps({"type": "authenticate", "token": tenant.rita.token}))
        told = await received(ws)
        assert (told["type"], told["status"], told["code"]) == ("error", 403, "not_authorised")
    wide = tenant.token("ada", "admin", project="*")
    execution_id = tenant.execution()
    for header, message, seen in (("default", "", 200), ("elsewhere", "", 404), ("default", "default", 200)):
        async with socket(site, additional_headers={"Placet-Project": header}) as ws:
            await ws.send(json.dumps({"type": "authenticate", "token": wide, "project": message}))
            assert (await received(ws))["type"] == "authenticated"
            channels = [f"executions:{execution_id}"]
            await ws.send(json.dumps({"type": "subscribe", "ref": "s", "channels": channels}))
            assert (await received(ws)).get("status", 200) == seen, (header, message)
    async with socket(site, additional_headers={"Placet-Project": "default"}) as ws:
        await ws.send(json.dumps({"type": "authenticate", "token": wide, "project": "elsewhere"}))
        assert (await received(ws))["code"] == "invalid"


async def test_page_that_calls_this_gateway_by_a_name_of_its_own_gets_nothing(
    site: Site, tenant: Tenant
) -> None:
    """DNS rebinding: the browser believes that we are the page's own server, and sends all that it has: no token."""
    evil = {"Host": "evil.example"}
    for path in ("/v1/holds", "/v1/executions", "/v1/policies", "/v1/events/stream"):
        assert refused(tenant.client.get(path, headers=evil)) == UNAUTHENTICATED
    for path in ("/healthz", "/readyz", "/holds/h1", "/openapi.json", "/metrics", "/v1/holds/", "/v1/holds"):
        answer = tenant.client.get(path, headers=evil, follow_redirects=False)
        assert "evil.example" not in answer.text + str(answer.headers), path
        assert not {"set-cookie", "location", "access-control-allow-origin"} & set(answer.headers), path
    for origin in ("http://evil.example", f"http://evil.example:{urlsplit(site.url).port}"):
        assert await refusal_of_socket(site, "/v1/ws", origin=origin) == 403
    # Whoever has a token may call the gateway as they like: names of proxies and clusters are not known here.
    assert tenant.rita.get("/holds", headers=evil).status_code == 200


def test_percent_encoded_slash_makes_no_other_id_of_an_id(site: Site, tenant: Tenant) -> None:
    """It is a separator, as to the router so to every check: no id has a slash, however often it is encoded."""
    execution_id, call = tenant.held()
    path, spy = f"/v1/executions/{execution_id}", tenant.token("spy", "agent", agent="spy")

    def got(target: str, token: str) -> int:
        connection = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=20)
        connection.request("GET", target, headers={"Authorization": f"Bearer {token}"})
        status = connection.getresponse().status
        connection.close()
        return status

    own = tenant.bot.token
    for written in (path, path.replace("s/", "s%2f"), f"{path}/tool-calls/c1", f"{path}%2Ftool-calls%2fc1"):
        assert (got(written, own) in (200, 202), got(written, spy)) == (True, 403), written
    for confused in (
        f"{path}%252ftool-calls%252fc1",
        f"/v1/executions/none%2f..%2f{execution_id}",
        f"/v1/holds/{quote('../holds/' + call['hold_id'], safe='')}",
        f"/v1/executions/{tenant.name}%2fdefault%2f{execution_id}",
    ):
        assert got(confused, own) == 404, confused
