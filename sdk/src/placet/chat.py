"""The user's side of a conversation: a message, and the stream of the agent's answer, across reconnects."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from placet import asks
from placet.channel import Channel
from placet.chat_models import ChatEvent, ChatMessage, Responded
from placet.errors import refusal
from placet.ids import check_chosen_id, check_id, new_id
from placet.models import Page
from placet.transport.port import ConnectionLost, Patience, TokenSource
from placet.transport.retry import Outage
from placet.transport.sse import StreamOver, sse_events

_ENDS = frozenset({"complete", "error"})


@dataclass(frozen=True)
class AsyncConversations:
    """Conversations with agents."""

    channel: Channel
    url: str = field(repr=False)
    token: TokenSource = field(repr=False)
    patience: Patience
    agent: str | None = None

    def chat(
        self,
        message: str,
        *,
        conversation_id: str | None = None,
        agent: str | None = None,
        message_id: str | None = None,
        user: str | None = None,
    ) -> AsyncGenerator[ChatEvent, None]:
        """Send an agent a message and follow its answer, which ends with the event complete or error.

        Args:
            message: the text.
            conversation_id: to go on with a conversation; each event names it.
            agent: the agent of a new conversation; by default the client's.
            message_id: the same id is the same message, which is answered once.
            user: the user for whom a new conversation's agent works, as the token permits.

        Raises:
            Refused: the message was not accepted.
            Unreachable: no gateway answered for too long.
        """
        body = {
            "message": message,
            "message_id": check_chosen_id(message_id or new_id(), "message id"),
            "conversation_id": check_chosen_id(conversation_id or new_id(), "conversation id"),
            "agent": agent or (self.agent if conversation_id is None else None),
            "user": user,
        }
        sent = {name: value for name, value in body.items() if value is not None}
        return self._events("POST", {"json": sent}, None, is_one_turn=True)

    async def respond(
        self, request_id: str, response: Any, *, conversation_id: str | None = None, feedback: str = ""
    ) -> Responded:
        """Answer an agent's question; None rejects it, with `feedback`. The same answer again changes nothing.

        Raises:
            AlreadyDecided: the question has another answer, or another person's.
        """
        asked = asks.respond(request_id, response, conversation_id, feedback)
        return await self.channel.one(Responded, asked)

    async def continue_chat(
        self, request_id: str, response: Any, *, conversation_id: str | None = None, feedback: str = ""
    ) -> AsyncGenerator[ChatEvent, None]:
        """Answer an agent's question, and follow the turn in which it was asked: what comes after the answer.

        The same answer again shows the same events, also when the turn is over. No event if no turn asked it.
        """
        told = await self.respond(request_id, response, conversation_id=conversation_id, feedback=feedback)
        if not told.message_id:
            return
        async with aclosing(self.follow(told.conversation_id, message_id=told.message_id)) as events:
            is_after, last = False, ""
            async for event in events:
                # The turn is shown from its beginning, so that it does not matter when the answer was given.
                if is_after or event.type in _ENDS:
                    yield event
                if event.type in _ENDS:
                    # An `unavailable` with an id of its own: the turn comes from its beginning again.
                    is_after = is_after and event.cursor in ("", last)
                elif event.type == "hitl_resolved" and event.body.get("request_id") == request_id:
                    is_after = True
                last = event.cursor or last

    def follow(
        self, conversation_id: str, *, message_id: str | None = None, cursor: str | None = None
    ) -> AsyncGenerator[ChatEvent, None]:
        """Follow a conversation without sending anything: one turn to its end, or without one all of them.

        Without a cursor a turn is shown from its beginning, and of a conversation first what is open.

        Args:
            conversation_id: the conversation.
            message_id: the message whose answer is followed.
            cursor: of the last event seen.
        """
        params = {"conversation_id": check_id(conversation_id, "conversation id")}
        if message_id is not None:
            params["message_id"] = check_id(message_id, "message id")
        return self._events("GET", {"params": params}, cursor, is_one_turn=message_id is not None)

    async def messages(
        self, conversation_id: str, *, cursor: str | None = None, newest_first: bool = False
    ) -> Page[ChatMessage]:
        """The messages of a conversation, a page at a time: in order, or from the newest back."""
        order = "desc" if newest_first else None
        return await self.channel.page(ChatMessage, asks.list_messages(conversation_id, cursor, order=order))

    async def under_way(self, conversation_id: str) -> list[str]:
        """The ids of the messages that are not answered yet, in order; `follow` shows the turn of each.

        Raises:
            Refused: there is no such conversation for this token.
        """
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await self.messages(conversation_id, cursor=cursor, newest_first=True)
            for turn_id in (message.turn_id for message in page if message.role == "user"):
                turn = await self.channel.ask(asks.get_turn(conversation_id, turn_id))
                # Turns are worked on in the order of their messages: before one that is over, all are.
                if turn["ended_at"] is not None:
                    return found[::-1]
                found.append(turn_id)
            if (cursor := page.next_cursor) is None:
                return found[::-1]

    async def _events(
        self, method: str, request: Mapping[str, Any], cursor: str | None, is_one_turn: bool
    ) -> AsyncGenerator[ChatEvent, None]:
        outage = Outage(self.patience)
        while True:
            source = sse_events(
                self.url, "/agent/chat", self.token, self.patience, cursor, method=method, **request
            )
            try:
                async with aclosing(source) as events:
                    async for kind, data, last_id in events:
                        if not data:
                            # The stream's place, before its first event.
                            cursor = last_id
                            continue
                        event = _event(kind, json.loads(data), last_id)
                        outage.heard()
                        cursor = event.cursor or cursor
                        yield event
                        if is_one_turn and _is_end(event):
                            return
            except StreamOver:
                return
            except ConnectionLost as lost:
                outage.tolerate(lost)
            await outage.pause()


def _is_end(event: ChatEvent) -> bool:
    return event.type in _ENDS and event.body.get("code") != "unavailable"


def _event(kind: str, body: Mapping[str, Any], cursor: str) -> ChatEvent:
    if kind == "error" and body.get("code") == "unauthenticated":
        # The token was accepted at first and has expired since: the next try uses a new one.
        raise ConnectionLost(str(refusal(401, body)), opened=True)
    return ChatEvent(kind, cursor, body)
