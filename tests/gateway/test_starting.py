"""A gateway that is still reading the log: who has which roles it does not know, so it lets nobody read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from gateway.identity.authentication import Authenticator
from gateway.identity.issuer import issue
from gateway.identity.keys import ISSUERS, PublishedKeyFile
from gateway.problems import Problem
from gateway.rest.request_context import context_of
from gateway.service.live_state import beginning_of
from gateway.service.readiness import own_problems
from gateway.shares.rates import Buckets
from gateway.views import Beginning
from projections.store.port import ViewUnavailable
from tests.gateway.facts import new_work
from vitals.process_status import ProcessStatus

BEGINNING = Beginning([], {}, [], [], [], [])


class ViewsAway:
    """Views whose database is away at the first attempts."""

    def __init__(self, *said: str) -> None:
        self.said = list(said)

    async def beginning(self, executions_max: int) -> Beginning:
        if self.said:
            raise ViewUnavailable(self.said.pop(0))
        return BEGINNING


async def test_start_that_waits_for_the_views_logs_why_and_tells_no_client_of_hosts_and_users(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waited: list[str] = []
    refused = 'The database does not answer: refused\n\tby "10.0.0.5" for user "placet"'
    views: Any = ViewsAway(refused, refused, "There is no view yet")

    with caplog.at_level("INFO", "gateway.service.live_state"):
        assert await beginning_of(views, waited.append) is BEGINNING
    assert waited == [ViewUnavailable.public] * 3
    assert [record.getMessage() for record in caplog.records] == [
        'waiting for the views: The database does not answer: refused by "10.0.0.5" for user "placet"',
        "waiting for the views: There is no view yet",
    ]


@pytest.mark.parametrize("waits_for", ["the vault is being opened: its database has not answered yet", ""])
async def test_gateway_that_is_not_ready_says_what_it_waits_for(waits_for: str) -> None:
    status = ProcessStatus("gateway", "gateway")
    status.reason = waits_for
    gateway: Any = SimpleNamespace(
        tasks=SimpleNamespace(failure=None), caught_up=False, status=status, examination=None
    )

    assert await own_problems(gateway) == [waits_for or "the gateway is starting"]


async def test_case_30_all_who_ask_at_once_whether_a_gateway_is_ready_cost_it_one_examination() -> None:
    examined, go_on = 0, asyncio.Event()

    async def read(ask: Any) -> None:
        nonlocal examined
        examined += 1
        await go_on.wait()

    gateway: Any = SimpleNamespace(
        tasks=SimpleNamespace(failure=None),
        caught_up=True,
        commands=SimpleNamespace(time=SimpleNamespace(known=True), connected=True),
        gate=SimpleNamespace(live=SimpleNamespace(read_through=[])),
        tail=SimpleNamespace(lag=lambda read_through: 0),
        views=SimpleNamespace(read=read),
        examination=None,
    )
    asked = [asyncio.create_task(own_problems(gateway)) for _ in range(50)]
    await asyncio.sleep(0)
    asked[0].cancel()
    await asyncio.sleep(0)
    go_on.set()
    assert await asyncio.gather(*asked[1:]) == [[]] * 49
    assert examined == 1
    assert await own_problems(gateway) == []
    assert examined == 2


def request_of(gateway: Any, token: str) -> Request:
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/audit",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {token}".encode())],
        "app": SimpleNamespace(state=SimpleNamespace(gateway=gateway)),
        "state": {},
        "route": SimpleNamespace(openapi_extra=None),
    }
    return Request(scope)


async def test_door_before_the_log_was_read_is_unavailable_also_for_an_admins_token(tmp_path: Path) -> None:
    token = issue(tmp_path, "root", ["admin"], "acme", "main")
    authenticator = Authenticator(PublishedKeyFile(tmp_path / ISSUERS).get)
    gateway = SimpleNamespace(
        authenticator=authenticator, requests=Buckets(10), caught_up=False, work=new_work()
    )

    with pytest.raises(Problem) as refused:
        await context_of(request_of(gateway, token))
    with pytest.raises(Problem) as unknown:
        await context_of(request_of(gateway, "no token"))

    assert (refused.value.code, unknown.value.code) == ("unavailable", "unauthenticated")
    gateway.caught_up = True
    assert (await context_of(request_of(gateway, token))).actor.subject == "root"
