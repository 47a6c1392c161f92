"""What a socket's messages start: ended with it whenever that is, and counted once."""

from __future__ import annotations

import asyncio
import gc
import time
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.settings import Limits
from gateway.sockets import session as sessions
from gateway.sockets.session import Session
from tests.gateway.facts import new_outgoing, new_work

OWNER = ("acme", "anna")


def session() -> Session:
    hub: Any = SimpleNamespace(forget=lambda _: None, unsubscribe=lambda *_: None)
    metrics: Any = SimpleNamespace(messages=SimpleNamespace(inc=lambda: None))
    gate: Any = SimpleNamespace(work=new_work(), live=None)
    claims: Any = SimpleNamespace(actor=SimpleNamespace(tenant=OWNER[0], subject=OWNER[1]))
    return Session(gate, hub, claims, Limits(), metrics, new_outgoing(Limits()))


def busy(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.parametrize("message", [{"type": "subscribe", "channels": ["holds"]}, {"type": "unsubscribe"}])
async def test_what_a_message_starts_is_closed_where_the_socket_ends_before_it_begins(
    message: dict[str, Any], recwarn: pytest.WarningsRecorder
) -> None:
    one = session()
    one.handle(lambda: {"channels": [], "ref": "1", **message})
    one.close()
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()

    assert [str(warning.message) for warning in recwarn.list] == []


async def test_catching_up_is_not_counted_again_beside_its_own_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """It rests between its slices; what asks for it is counted."""
    one, done, spent = session(), asyncio.Event(), list[float]()

    async def catching_up() -> None:
        busy(0.05)
        done.set()

    async def subscribe(*_: Any) -> Any:
        busy(0.01)
        return catching_up()

    monkeypatch.setattr(sessions, "subscribe", subscribe)
    monkeypatch.setattr(one.gate.work, "noted", lambda _, seconds: spent.append(seconds))
    one.handle(lambda: {"type": "subscribe", "channels": ["holds"], "ref": "1"})
    async with asyncio.timeout(10):
        await done.wait()
    one.close()

    assert 0.01 <= sum(spent) < 0.05
