"""A socket that fails by a fault of the gateway: its client is told, and the fault is told to the server."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.websockets import WebSocket

from gateway.sockets import ws

GATEWAY: Any = SimpleNamespace(socket_limit=SimpleNamespace(open=lambda actor: nullcontext()))


def socket(sent: list[dict[str, Any]], gone: bool = False) -> WebSocket:
    """A socket that a client has asked for; one whose client is gone takes no more than the first message."""

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        if gone and sent:
            raise OSError("the client is gone")
        sent.append(message)

    app = SimpleNamespace(state=SimpleNamespace(gateway=GATEWAY))
    scope = {"type": "websocket", "app": app, "headers": [], "subprotocols": [ws.SUBPROTOCOL]}
    return WebSocket(scope, receive, send)


@pytest.fixture(params=["_authenticate", "_serve"])
def _failing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    async def admitted(*_: Any) -> Any:
        return SimpleNamespace(claims=SimpleNamespace(actor=SimpleNamespace(tenant="acme", subject="anna")))

    async def failing(*_: Any) -> None:
        raise KeyError("a fault")

    monkeypatch.setattr(ws, "_unwelcome", lambda *_: None)
    monkeypatch.setattr(ws, "mark_request_authenticated", lambda scope, owner: None)
    monkeypatch.setattr(ws, "_authenticate", admitted)
    monkeypatch.setattr(ws, request.param, failing)


@pytest.mark.usefixtures("_failing")
async def test_socket_that_fails_unexpectedly_is_closed_with_1011_and_the_failure_is_told() -> None:
    sent: list[dict[str, Any]] = []
    with pytest.raises(KeyError, match="a fault"):
        await ws.endpoint(socket(sent))
    assert [(message["type"], message.get("code")) for message in sent] == [
        ("websocket.accept", None),
        ("websocket.close", 1011),
    ]


@pytest.mark.usefixtures("_failing")
async def test_socket_that_fails_after_its_client_left_still_tells_the_failure() -> None:
    with pytest.raises(KeyError, match="a fault"):
        await ws.endpoint(socket([], gone=True))
