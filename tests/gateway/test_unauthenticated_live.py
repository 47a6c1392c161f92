"""What strangers say first to a gateway that runs."""

from __future__ import annotations

import json

import pytest

from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import raw_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]


async def test_case_30_nothing_that_a_stranger_says_first_writes_a_traceback(
    doors: Doors, bot: Caller
) -> None:
    log = doors.stack.data_dir / "logs" / "gateway.log"
    already = len(log.read_text(encoding="utf-8"))
    authenticate = {"type": "authenticate", "token": bot.token}
    for first, code in (
        (b"\xff\xfe", 4401),
        (b"", 4401),
        (b"[" * 60_000, 4401),
        (b'{"type":"authenticate","token":"\\ud800"}', 4401),
        (json.dumps({**authenticate, "project": "\u00e9" * 500}).encode(), 4403),
        (json.dumps({**authenticate, "token": "\u00e9.\u00e9.\u00e9"}).encode(), 4401),
        (json.dumps({**authenticate, "token": "x" * 60_000}).encode(), 4401),
    ):
        async with raw_socket(bot.url) as connection:
            await connection.send(first)
            assert json.loads(await connection.recv())["type"] == "error"
            await connection.wait_closed()
            assert connection.close_code == code
    async with raw_socket(bot.url) as connection:
        await connection.send("")
        connection.transport.abort()
    assert "Traceback" not in log.read_text(encoding="utf-8")[already:]
