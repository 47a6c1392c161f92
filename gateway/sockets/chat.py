"""The events of a chat: the messages of a conversation's channel in the words of a chat's client.

A message of the channel becomes at most one event. Its id is the message's cursor, so that a client that returns with
it continues there, at any gateway.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import orjson

from gateway.sockets.sse import event_bytes
from projections.folds.turns import message_json, turn_json
from projections.tables.conversations import MessageRow, TurnRow
from schemas.events.conversations import TurnEnding

_CALLS = frozenset({"tool_call_changed", "tool_call_decided"})
_ASKS = frozenset({"tool_call_pending_review", "hitl_requested"})
_ENDED = frozenset(get_args(TurnEnding))
# Fields of a channel's message that are of the channel and not of the resource.
_ENVELOPE = ("type", "cursor")

Told = tuple[str, dict[str, Any]]


class ChatEvents:
    """The events for one reader, of one turn or of a whole conversation.

    With a turn, nothing is shown until a worker has taken it on, because until then the agent works on an earlier
    turn; and the stream is over with the turn. Without one, all messages are shown, and the stream does not end.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._turn_id: str | None = None
        self._is_ours = True
        self._replies = 0

    def follow(self, row: TurnRow) -> None:
        """Show one turn, from its present state on."""
        self._turn_id = row["turn_id"]
        self._is_ours = row["claims"] > 0

    def replayed(self, rows: Iterable[MessageRow]) -> list[bytes]:
        """Return the replies that the turn has had; they are not shown again."""
        found = [row for row in rows if row["turn_id"] == self._turn_id and row["number"] > self._replies]
        if found:
            self._replies = found[-1]["number"]
        return [event_bytes("message", message_json(row)) for row in found if row["text"]]

    def __call__(self, frame: bytes) -> bytes:
        """Return the event for a message of the channel; empty if it is not for this reader."""
        message: dict[str, Any] = orjson.loads(frame)
        kind, cursor = message["type"], message.get("cursor")
        told = self._told(kind, {name: value for name, value in message.items() if name not in _ENVELOPE})
        return b"" if told is None else event_bytes(*told, cursor)

    def _told(self, kind: str, content: dict[str, Any]) -> Told | None:
        if kind == "turn_changed":
            return self._turn(content)
        if kind in ("resync_required", "error"):
            self.is_over = True
            return "error", {"code": "unavailable", **content}
        if not self._is_ours:
            return None
        if kind == "message":
            return self._message(content)
        if kind in _CALLS:
            return "tool_call", {**content, "grant": None}
        if kind in _ASKS:
            return "hitl_requested", content
        return ("hitl_resolved", content) if kind == "hold_resolved" else None

    def _message(self, content: dict[str, Any]) -> Told | None:
        if self._turn_id is None:
            return ("message", content) if content["text"] else None
        if content["turn_id"] != self._turn_id or content["number"] <= self._replies:
            return None
        self._replies = content["number"]
        return ("message", content) if content["text"] else None

    def _turn(self, content: dict[str, Any]) -> Told | None:
        if self._turn_id is not None and content["turn_id"] != self._turn_id:
            return None
        self._is_ours = self._is_ours or content["status"] == "claimed"
        if content["status"] not in _ENDED:
            return None
        self.is_over = self._turn_id is not None
        if content["status"] == "completed":
            return "complete", content
        detail = content["error"] or f"the turn has {content['status']}"
        return "error", {"code": content["status"], "detail": detail, **content}


def ended_frame(row: TurnRow) -> bytes | None:
    """Return the message that says how a turn has ended, for a reader that may have missed it; None if it has not."""
    if row["ended_at_ms"] is None:
        return None
    return orjson.dumps({"type": "turn_changed", **turn_json(row)})
