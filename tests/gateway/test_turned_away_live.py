"""How a socket is refused: its address is unknown, or its token is valid and may not do what it asks for."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from placet import AsyncPlacet
from placet.errors import NotAuthorised
from tests.gateway.conftest import Caller
from tests.gateway.sockets import raw_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]


async def test_token_of_another_project_is_closed_with_a_code_of_its_own(bot: Caller) -> None:
    """What 4401 tells to do, to get a new token, could not help."""
    async with raw_socket(bot.url) as connection:
        await connection.send(json.dumps({"type": "authenticate", "token": bot.token, "project": "other"}))
        refused = json.loads(await connection.recv())
        assert (refused["code"], refused["status"]) == ("not_authorised", 403)
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4403
    client = AsyncPlacet(bot.url, token=bot.token, agent="billing", project="other", transport="ws")
    async with asyncio.timeout(10), aclosing(client.events(["events"])) as events:
        with pytest.raises(NotAuthorised):
            await anext(events)
    with pytest.raises(NotAuthorised):
        async with asyncio.timeout(10), client.execution():
            raise AssertionError("it was let in")
    await client.close()


@pytest.mark.parametrize("more", ["2", "/", "/../holds"])
async def test_handshake_at_another_address_finds_nothing(bot: Caller, more: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with raw_socket(bot.url, more):
            pass
    answer = refused.value.response
    assert (answer.status_code, json.loads(answer.body)["code"]) == (404, "not_found")
