"""What others say in a conversation at a terminal, beside the messages that are sent there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from placet.cli.telling import tell
from placet.errors import NotFound
from placet.ids import segment
from placet.models import Object

if TYPE_CHECKING:
    from placet.chat_models import ChatMessage
    from placet.sync import Placet


def turn_of(placet: Placet, conversation_id: str, turn_id: str) -> Object:
    """The turn of a message."""
    found: Object = placet.fetch(f"/executions/{segment(conversation_id)}/turns/{segment(turn_id)}")
    return found


class Earlier:
    """The turns of a conversation that this terminal has not shown to their end."""

    def __init__(self, placet: Placet, conversation_id: str) -> None:
        self._placet = placet
        self._conversation_id = conversation_id
        self._over: set[str] = set()
        # Of the last page that was read: it may have grown.
        self._cursor: str | None = None

    def over(self, turn_id: str) -> None:
        """Record that a turn was shown to its end."""
        self._over.add(turn_id)

    def begun(self) -> list[str]:
        """The turns under way; those that are over before now count as shown."""
        # The first message opens the conversation.
        with suppress(NotFound):
            turns = self._placet.conversations.under_way(self._conversation_id)
            self._over |= {message.turn_id for message in self._messages()} - set(turns)
            return turns
        return []

    def told(self, *, before: str) -> Iterator[str]:
        """Print what others have said since; the turns before a message that are under way, to be followed."""
        by_turn: dict[str, list[ChatMessage]] = {}
        with suppress(NotFound):
            for message in self._messages():
                by_turn.setdefault(message.turn_id, []).append(message)
        for turn_id, messages in by_turn.items():
            if turn_id == before:
                return
            if turn_id in self._over:
                continue
            goes_on = turn_of(self._placet, self._conversation_id, turn_id)["ended_at"] is None
            for message in messages:
                # The replies of a turn under way come with its events.
                if message.role == "user" or not goes_on:
                    tell(f"{message.by}: {message.text}")
            if goes_on:
                yield turn_id
            self._over.add(turn_id)

    def _messages(self) -> list[ChatMessage]:
        found: list[ChatMessage] = []
        while True:
            page = self._placet.conversations.messages(self._conversation_id, cursor=self._cursor)
            found += page.items
            if page.next_cursor is None:
                return found
            self._cursor = page.next_cursor
