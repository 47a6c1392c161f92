"""A synchronous client that nobody closes: it ends on whatever thread it is collected, and prints nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from placet import AsyncPlacet, Placet, client_finalizer
from placet.loopthread import LoopThread
from tests.sdk.scripted import DEADLINE_S, Peer, Scripted
from tests.sdk.threaded import serving_thread

NOWHERE = "http://127.0.0.1:1"
LEFT = f"from placet import Placet\nclient = Placet({NOWHERE!r}, token='t')\n"
LEFT_IN_A_FORK = (
    f"import os, sys\n{LEFT}child = os.fork()\nif child:\n    sys.exit(os.waitpid(child, 0)[1])\n"
)


@pytest.fixture(autouse=True)
def unraisable(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What a finaliser raised, which the interpreter prints; nothing, at the end of each test."""
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    yield told
    assert told == []


@pytest.fixture
def other() -> Iterator[LoopThread]:
    """The thread of another client."""
    made = LoopThread()
    yield made
    made.stop()


def dropped_on(where: LoopThread, held: list[Any]) -> None:
    """Let a callback on a loop drop the last references; the caller must hold none."""
    dropped = threading.Event()

    def drop() -> None:
        held.clear()
        dropped.set()

    where.soon(drop)
    assert dropped.wait(DEADLINE_S)


def has_ended(thread: LoopThread) -> bool:
    thread._thread.join(DEADLINE_S)
    return not thread._thread.is_alive()


async def number() -> int:
    return 7


def test_client_collected_on_its_own_thread_ends() -> None:
    held = [Placet(NOWHERE, token="t")]
    own = held[0]._thread
    dropped_on(own, held)
    assert has_ended(own)


def test_client_collected_on_its_own_thread_closes_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = threading.Event()
    close = AsyncPlacet.close

    async def closing(self: AsyncPlacet) -> None:
        await close(self)
        closed.set()

    monkeypatch.setattr(AsyncPlacet, "close", closing)
    held = [Placet(NOWHERE, token="t")]
    own = held[0]._thread
    dropped_on(own, held)
    assert has_ended(own)
    assert closed.is_set()


def test_client_collected_on_anothers_thread_does_not_stop_what_runs_there(
    other: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(self: AsyncPlacet) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(AsyncPlacet, "close", endless)
    monkeypatch.setattr(client_finalizer, "CLOSE_S", 1.0)
    held = [Placet(NOWHERE, token="t")]
    own = held[0]._thread
    dropped_on(other, held)
    assert other.run(number, DEADLINE_S) == 7
    assert own._thread.is_alive(), "the other client was answered only when this one had ended"
    assert has_ended(own)


def test_client_collected_under_its_stream_on_its_own_thread_ends() -> None:
    gone = threading.Event()

    async def tell(peer: Peer, message: dict[str, object]) -> None:
        if message["type"] == "subscribe":
            await peer.say(type="hold_changed", cursor="k0", hold_id="0")
            with suppress(WebSocketDisconnect):
                while True:
                    await peer.socket.receive_text()
            gone.set()

    with serving_thread(Scripted(on_frame=tell)) as script:
        held: list[Any] = [Placet(script.url, token="t")]
        own = held[0]._thread
        held.append(held[0].events(("holds",)))
        assert next(held[1]).cursor == "k0"
        dropped_on(own, held)
        assert has_ended(own)
        assert gone.wait(DEADLINE_S)


def test_what_would_end_a_stream_is_nothing_once_its_client_has_ended() -> None:
    thread = LoopThread()
    thread.stop()

    async def never() -> None:
        raise AssertionError

    thread.settle(never)


@pytest.mark.parametrize("program", [LEFT, LEFT_IN_A_FORK], ids=["process", "fork"])
def test_client_that_is_left_at_the_end_of_a_process_prints_nothing(program: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
