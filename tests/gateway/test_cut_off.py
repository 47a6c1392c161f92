"""Connections that end in the middle of an answer, and refusals behind one, on real sockets."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.gateway.test_server_bounds import (
    BOUNDS,
    GET,
    POST,
    TOKEN,
    answer_of,
    asked,
    connected,
    problem_in,
    served,
    status_of,
)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served(BOUNDS) as (found, _):
        yield found


@pytest.mark.parametrize("name", ["pipelined", "left", "left behind garbage"])
async def test_connection_that_is_cut_off_during_an_answer_is_no_error(
    port: int, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    later = GET.replace(b" / ", b" /later ") + TOKEN + b"\r\n"
    many = {"pipelined": 60, "left": 2, "left behind garbage": 1}[name]
    sent = later * many + (b"GARBAGE\r\n\r\n" if "garbage" in name else b"")
    with caplog.at_level(logging.ERROR):
        for _ in range(5):
            async with connected(port) as (reader, writer):
                writer.write(sent)
                await writer.drain()
                if name == "pipelined":
                    with suppress(ConnectionResetError):
                        assert await answer_of(reader) == b""
        assert status_of(await asked(port, later[:-2] + b"Connection: close\r\n\r\n")) == 200
    assert caplog.records == []


async def test_garbage_behind_a_request_is_refused_behind_its_answer(port: int) -> None:
    body = b'{"a": 1}'
    sent = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    found = await asked(port, sent + b"GARBAGE\r\n\r\n" + sent)
    first, _, second = found.partition(b"}")
    assert status_of(first) == 200
    assert (status_of(second), problem_in(second)["code"]) == (400, "malformed")
