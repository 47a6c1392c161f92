"""The AsyncAPI 3 document: the WebSocket, the human bridge, the stream, and the log's topics."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import BaseModel

from gateway.docs_gen import log
from gateway.docs_gen.openapi import VERSION
from gateway.docs_gen.schemas import Schemas, add, schemas_of, summary_of
from gateway.sockets import bridge_protocol
from gateway.sockets.protocol import CLIENT_MESSAGES, SERVER_MESSAGES, type_of
from gateway.sockets.ws import FRAME_MAX_BYTES
from schemas.topics import Topics
from schemas.trace_context import TRACEPARENT

REF = "#/components/schemas/{model}"
WS = "websocket"
BRIDGE = "bridge"
SSE = "stream"
# Messages by their names in the document.
FROM_CLIENTS: dict[str, type[BaseModel]] = {type_of(model): model for model in CLIENT_MESSAGES}
FROM_GATEWAY: dict[str, type[BaseModel]] = {type_of(model): model for model in SERVER_MESSAGES}
MESSAGES = {**FROM_CLIENTS, **FROM_GATEWAY, **bridge_protocol.CLIENT, **bridge_protocol.SERVER}


@cache
def asyncapi_document(topics: Topics, partitions: int) -> dict[str, Any]:
    """Return the document. Actions are named from the gateway's side: it receives what clients send.

    Args:
        topics: those of the installation.
        partitions: how many of them the topics of executions have.
    """
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Placet",
            "version": VERSION,
            "description": (
                "Follow executions and holds, decide on holds, and gate an agent's tool calls: by WebSocket, "
                "by server-sent events, or on the log itself, whose rules are docs/log-contract.md."
            ),
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "gateway": {
                "host": "{host}",
                "protocol": "ws",
                "description": "A gateway; wss behind TLS.",
                "variables": {"host": {"default": "127.0.0.1:8000"}},
                "security": [{"$ref": "#/components/securitySchemes/bearer"}],
            },
            "kafka": log.server(),
        },
        "channels": {WS: _websocket(), BRIDGE: _bridge(), SSE: _stream(), **log.channels(topics, partitions)},
        "operations": {**_operations(), **log.operations()},
        "components": {
            "messages": {name: _message(name) for name in MESSAGES} | log.messages(),
            "schemas": _schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "sasl": {
                    "type": "scramSha512",
                    "description": "Or any other mechanism that the cluster requires.",
                },
            },
        },
    }


def _websocket() -> dict[str, Any]:
    return {
        "address": "/v1/ws",
        "servers": [{"$ref": "#/servers/gateway"}],
        "title": "WebSocket",
        "description": (
            "Subprotocol placet.v1. Frames from clients are JSON texts of at most 1 MiB, "
            "those from the gateway of at most 4 MiB."
        ),
        "messages": _components({**FROM_CLIENTS, **FROM_GATEWAY}),
        "bindings": {"ws": {"method": "GET", "bindingVersion": "0.1.0"}},
    }


def _bridge() -> dict[str, Any]:
    return {
        "address": "/human-bridge",
        "servers": [{"$ref": "#/servers/gateway"}],
        "title": "Human bridge",
        "description": (
            "Questions and answers in a few messages; authentication, limits and refusals are those of /v1/ws. "
            f"Frames are JSON texts of at most {FRAME_MAX_BYTES // 1024} KiB."
        ),
        "messages": _components({**bridge_protocol.CLIENT, **bridge_protocol.SERVER}),
        "bindings": {"ws": {"method": "GET", "bindingVersion": "0.1.0"}},
    }


def _stream() -> dict[str, Any]:
    return {
        "address": "/v1/events/stream",
        "servers": [{"$ref": "#/servers/gateway"}],
        "title": "Server-sent events",
        "description": "The gateway's messages; `id` is the cursor, and Last-Event-ID continues after it.",
        "messages": _components(FROM_GATEWAY),
    }


def _operations() -> dict[str, Any]:
    streamed = {
        "stream": {
            "action": "send",
            "channel": {"$ref": f"#/channels/{SSE}"},
            "summary": "The messages of the channels in the query.",
            "messages": [{"$ref": f"#/channels/{SSE}/messages/{name}"} for name in FROM_GATEWAY],
        }
    }
    return {
        **{f"on_{name}": _operation("receive", WS, name) for name in FROM_CLIENTS},
        **{f"send_{name}": _operation("send", WS, name) for name in FROM_GATEWAY},
        **{_on_bridge("on", name): _operation("receive", BRIDGE, name) for name in bridge_protocol.CLIENT},
        **{_on_bridge("send", name): _operation("send", BRIDGE, name) for name in bridge_protocol.SERVER},
        **streamed,
    }


def _on_bridge(verb: str, name: str) -> str:
    """The name of an operation on the bridge, which shares some messages with the other socket."""
    return f"{verb}_{BRIDGE}_{name.removeprefix(f'{BRIDGE}_')}"


def _operation(action: str, channel: str, name: str) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "summary": summary_of(MESSAGES[name]),
        "messages": [{"$ref": f"#/channels/{channel}/messages/{name}"}],
    }


def _components(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/messages/{name}"} for name in names}


def _message(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "title": name.replace("_", " "),
        "summary": summary_of(MESSAGES[name]),
        "payload": {"$ref": f"#/components/schemas/{_schema(name)}"},
    }


def _schemas() -> Schemas:
    found: Schemas = {}
    for name, model in MESSAGES.items():
        add(found, schemas_of(model, _schema(name), name_lists=True))
    for name in (*FROM_CLIENTS, *bridge_protocol.TRACED):
        found[_schema(name)]["properties"][TRACEPARENT] = log.TRACE
    for model in log.JSON_MODELS:
        add(found, schemas_of(model, model.__name__, name_lists=True))
    return found


def _schema(name: str) -> str:
    # Some messages have the same name as the REST body that they contain.
    return f"{name}_message"
