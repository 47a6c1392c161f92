"""What clients send: a long body is parsed at once, on a thread and in its sender's turn; its fault is said later."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from gateway.problems import Problem
from gateway.shares.intake import LONG_BYTES, taken_in
from gateway.shares.work import Work
from gateway.strictjson import parse, parse_object
from schemas.refusals import Refusal

OWNER = ("acme", "bot")
SHORT = {"policy": "p"}
LONG = {"policy": "p", "note": "x" * LONG_BYTES}


@pytest.mark.parametrize(("document", "is_long"), [(SHORT, False), (LONG, True)], ids=["short", "long"])
async def test_body_that_is_long_is_parsed_on_a_thread_before_it_is_asked_for(
    document: Any, is_long: bool
) -> None:
    threads: list[threading.Thread] = []

    def reading(raw: bytes) -> Any:
        threads.append(threading.current_thread())
        return parse(raw)

    read = await taken_in(Work(0.2, 0.2, 1.0), OWNER, json.dumps(document).encode(), reading)

    parsed_before = list(threads)
    assert read() == document
    assert len(parsed_before) == is_long
    assert (threads[0] is threading.main_thread()) == (not is_long)


async def test_body_that_is_long_waits_for_its_senders_turn() -> None:
    work = Work(0.2, 0.2, 1.0)
    async with work.turn(OWNER):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await taken_in(work, OWNER, json.dumps(LONG).encode(), parse)
        assert (await taken_in(work, OWNER, json.dumps(SHORT).encode(), parse))() == SHORT


@pytest.mark.parametrize("size", [0, LONG_BYTES])
async def test_body_that_is_no_json_is_refused_when_it_is_asked_for(size: int) -> None:
    read = await taken_in(Work(0.2, 0.2, 1.0), OWNER, b"{" + b" " * size, parse_object)

    with pytest.raises(Problem) as refused:
        read()
    assert refused.value.code == Refusal.MALFORMED
