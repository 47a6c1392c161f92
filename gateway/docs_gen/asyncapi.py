"""The AsyncAPI 3 document: the WebSocket and the stream, and the log's topics."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel

from gateway.docs_gen import log
from gateway.docs_gen.openapi import VERSION
from gateway.docs_gen.schemas import Schemas, add, schemas_of, summary_of
from gateway.sockets.protocol import CLIENT_MESSAGES, SERVER_MESSAGES, type_of
from schemas.trace_context import TRACEPARENT

REF = "#/components/schemas/{model}"
WS = "websocket"
SSE = "stream"


@cache
def asyncapi_document() -> dict[str, Any]:
    """Return the document. Actions are named from the gateway's side: it receives what clients send."""
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
        "channels": {WS: _websocket(), SSE: _stream(), **log.channels()},
        "operations": {**_operations(), **log.operations()},
        "components": {
            "messages": {type_of(model): _message(model) for model in (*CLIENT_MESSAGES, *SERVER_MESSAGES)}
            | log.messages(),
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
    models = (*CLIENT_MESSAGES, *SERVER_MESSAGES)
    return {
        "address": "/v1/ws",
        "servers": [{"$ref": "#/servers/gateway"}],
        "title": "WebSocket",
        "description": "Subprotocol placet.v1. Frames are JSON texts of at most 1 MiB.",
        "messages": {type_of(model): _component(model) for model in models},
        "bindings": {"ws": {"method": "GET", "bindingVersion": "0.1.0"}},
    }


def _stream() -> dict[str, Any]:
    return {
        "address": "/v1/events/stream",
        "servers": [{"$ref": "#/servers/gateway"}],
        "title": "Server-sent events",
        "description": "The gateway's messages; `id` is the cursor, and Last-Event-ID continues after it.",
        "messages": {type_of(model): _component(model) for model in SERVER_MESSAGES},
    }


def _operations() -> dict[str, Any]:
    received = {f"on_{type_of(model)}": _operation("receive", WS, model) for model in CLIENT_MESSAGES}
    sent = {f"send_{type_of(model)}": _operation("send", WS, model) for model in SERVER_MESSAGES}
    streamed = {
        "stream": {
            "action": "send",
            "channel": {"$ref": f"#/channels/{SSE}"},
            "summary": "The messages of the channels in the query.",
            "messages": [
                {"$ref": f"#/channels/{SSE}/messages/{type_of(model)}"} for model in SERVER_MESSAGES
            ],
        }
    }
    return {**received, **sent, **streamed}


def _operation(action: str, channel: str, model: type[BaseModel]) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "summary": summary_of(model),
        "messages": [{"$ref": f"#/channels/{channel}/messages/{type_of(model)}"}],
    }


def _component(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/messages/{type_of(model)}"}


def _message(model: type[BaseModel]) -> dict[str, Any]:
    return {
        "name": type_of(model),
        "title": type_of(model).replace("_", " "),
        "summary": summary_of(model),
        "payload": {"$ref": f"#/components/schemas/{_name(model)}"},
    }


def _schemas() -> Schemas:
    found: Schemas = {}
    for model in (*CLIENT_MESSAGES, *SERVER_MESSAGES):
        add(found, schemas_of(model, _name(model), name_lists=True))
    for model in CLIENT_MESSAGES:
        found[_name(model)]["properties"][TRACEPARENT] = log.TRACE
    for model in log.JSON_MODELS:
        add(found, schemas_of(model, model.__name__, name_lists=True))
    return found


def _name(model: type[BaseModel]) -> str:
    # Some messages have the same name as the REST body that they contain.
    return f"{type_of(model)}_message"
