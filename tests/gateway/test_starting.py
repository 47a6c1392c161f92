"""A gateway that is still reading the log: who has which roles it does not know, so it lets nobody read."""

from __future__ import annotations

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


async def test_start_that_waits_for_the_views_says_at_each_attempt_why() -> None:
    waited: list[str] = []
    views: Any = ViewsAway("The database does not answer: refused\n\tIs it running?", "There is no view yet")

    assert await beginning_of(views, waited.append) is BEGINNING
    assert waited == [
        "the views cannot be read yet: The database does not answer: refused Is it running?",
        "the views cannot be read yet: There is no view yet",
    ]


@pytest.mark.parametrize("waits_for", ["the vault is being opened: its database has not answered yet", ""])
async def test_gateway_that_is_not_ready_says_what_it_waits_for(waits_for: str) -> None:
    status = ProcessStatus("gateway", "gateway")
    status.reason = waits_for
    gateway: Any = SimpleNamespace(tasks=SimpleNamespace(failure=None), caught_up=False, status=status)

    assert await own_problems(gateway) == [waits_for or "the gateway is starting"]


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
