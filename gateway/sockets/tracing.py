"""The span of each message of a WebSocket client: from its arrival to its answer."""

from __future__ import annotations

from collections.abc import Container, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from gateway.sockets.protocol import CLIENT_MESSAGES, type_of
from schemas.actor import Actor
from schemas.ids import is_client_id
from schemas.token_text import without_tokens
from schemas.trace_context import TRACEPARENT, is_traceparent

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from vitals.spans import Spans

IDS = ("execution_id", "call_id", "hold_id")
KINDS = frozenset(map(type_of, CLIENT_MESSAGES))


def message_span(
    spans: Spans, frame: Mapping[str, Any], actor: Actor, own: Container[str]
) -> AbstractContextManager[Span]:
    """Return a span for a message, which continues the trace in its field `traceparent`.

    `own` are the types of messages that its endpoint has beside those of `placet.v1`.
    """
    from opentelemetry.trace import SpanKind

    said, kind = frame.get(TRACEPARENT), frame.get("type")
    facts: dict[str, str | int] = {"placet.tenant": actor.tenant, "placet.project": actor.project}
    for name in IDS:
        value = frame.get(name)
        if isinstance(value, str) and is_client_id(value):
            facts[f"placet.{name}"] = without_tokens(value)
    parent = said if isinstance(said, str) and is_traceparent(said) else ""
    # The name of an unknown message is its sender's own text.
    name = f"ws {kind}" if isinstance(kind, str) and (kind in KINDS or kind in own) else "ws message"
    return spans.work(name, SpanKind.SERVER, parent, facts)
