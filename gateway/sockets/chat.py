"""The events of a chat: the messages of a conversation's channel in the words of a chat's client.

A message of the channel becomes at most one event, a snapshot one for each row that it shows, and `more` where it has
left rows out. An event's id is the message's cursor, so that a client that returns with it continues there, at any
gateway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args

import orjson

from gateway.live.cache import Cache
from gateway.sockets.snapshots import Shown
from gateway.sockets.sse import event_bytes, place_bytes
from projections.folds.calls import call_json
from projections.folds.holds import hold_json
from schemas.events.conversations import TurnEnding

_CALLS = frozenset({"tool_call_changed", "tool_call_decided"})
_ASKS = frozenset({"tool_call_pending_review", "hitl_requested"})
_ENDED = frozenset(get_args(TurnEnding))
_ENDS_STREAM = frozenset({"resync_required", "error"})
# What a snapshot for a chat shows beside the execution, and the event for each row of it.
_CALLS_SHOWN, _HOLDS_SHOWN = "chat:calls", "chat:holds"
_SHOWN_AS = {_CALLS_SHOWN: "tool_call", _HOLDS_SHOWN: "hitl_requested"}
# Room goes to what a person must answer first: no call displaces a question.
_HOLDS_RANK, _CALLS_RANK = 1, 2
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
        self.tells_place = False
        self._turn_id: str | None = None
        self._is_ours = True
        self._was_shown: Callable[[str], bool] | None = None
        # How many rows of the snapshot's present channel have come in its parts so far.
        self._rows_shown = 0

    def follow(self, turn_id: str, *, is_ours: bool) -> None:
        """Show one turn.

        Args:
            turn_id: the turn.
            is_ours: True if a worker has taken it on before the first message that is shown.
        """
        self._turn_id, self._is_ours = turn_id, is_ours

    def pass_over(self, was_shown: Callable[[str], bool]) -> None:
        """Leave out the channel's next messages, as long as their cursors are of commands that were shown before."""
        self._was_shown = was_shown

    def __call__(self, frame: bytes) -> bytes:
        """Return the event for the channel's next message; empty if it is not for this reader."""
        message: dict[str, Any] = orjson.loads(frame)
        kind, cursor = message["type"], message.get("cursor")
        if kind == "snapshot":
            return self._snapshot(message)
        if self._was_shown is not None and kind not in _ENDS_STREAM and cursor is not None:
            if self._was_shown(cursor):
                return b""
            self._was_shown = None
        return self.event(message)

    def event(self, message: dict[str, Any]) -> bytes:
        """Return the event for a message of the channel, whenever it was; empty if it is not for this reader."""
        content = {name: value for name, value in message.items() if name not in _ENVELOPE}
        told = self._told(message["type"], content)
        return b"" if told is None else event_bytes(*told, message.get("cursor"))

    def _snapshot(self, message: dict[str, Any]) -> bytes:
        """Return the events for a part of a snapshot.

        Only the last event of all has an id: whoever returns with an earlier one would miss those after it. Where
        nothing is open the id comes alone, so that a reader whose connection is lost before its first event misses
        nothing, either.
        """
        kind, is_last = _SHOWN_AS.get(message["channel"]), False
        told: list[Told] = []
        if kind is not None:
            told = [*((kind, item) for item in message["items"]), *self._left_out(kind, message)]
            is_last = message["channel"] == _HOLDS_SHOWN and not message["more"]
        if not told:
            return place_bytes(message["cursor"]) if is_last else b""
        cursors = [*[None] * (len(told) - 1), message["cursor"] if is_last else None]
        return b"".join(event_bytes(*one, cursor) for one, cursor in zip(told, cursors, strict=True))

    def _left_out(self, kind: str, part: dict[str, Any]) -> Iterator[Told]:
        """Behind the last part of a channel, say whether there are more rows than had room."""
        self._rows_shown += len(part["items"])
        if part["more"]:
            return
        shown, self._rows_shown = self._rows_shown, 0
        if shown < part["total"]:
            yield "more", {"event": kind, "shown": shown, "total": part["total"]}

    def _told(self, kind: str, content: dict[str, Any]) -> Told | None:
        if kind == "turn_changed":
            return self._turn(content)
        if kind in _ENDS_STREAM:
            self.is_over = True
            is_known = content.get("code") == "unauthenticated"
            # Whatever else ends a stream, such as too many that catch up, the reader's next try is told.
            return "error", {**content, "code": "unauthenticated" if is_known else "unavailable"}
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
        if self._turn_id is not None and (content["turn_id"] != self._turn_id or content["number"] == 0):
            return None
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


def open_work(cache: Cache, key: bytes) -> tuple[Callable[[], Shown], Callable[[], Shown]]:
    """Return what looks up the calls and the holds of a conversation that are open, for a snapshot."""

    def calls() -> Shown:
        rows = cache.open_work(key)[0]
        return Shown(_CALLS_SHOWN, rows, lambda row: {**call_json(row), "grant": None}, rank=_CALLS_RANK)

    def holds() -> Shown:
        return Shown(_HOLDS_SHOWN, cache.open_work(key)[1], hold_json, rank=_HOLDS_RANK)

    return calls, holds
