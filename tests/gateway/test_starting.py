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
from gateway.shares.rates import Buckets
from tests.gateway.facts import new_work


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
