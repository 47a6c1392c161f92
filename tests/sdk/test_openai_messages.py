"""The messages that a model's endpoint gets: those that it accepts, whatever became of earlier turns."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from openai import OpenAIError

from placet.chat_models import ChatMessage
from placet.openai_agent import MESSAGES, ModelFailed, OpenAIAgent


class Called:
    """A tool call as the endpoint's client gives it."""

    def __init__(self, number: str) -> None:
        self._call = {
            "id": number,
            "type": "function",
            "function": {"name": "unknown_tool", "arguments": "{}"},
        }

    def model_dump(self, mode: str) -> dict[str, Any]:
        return self._call


@dataclass
class Endpoint:
    """Answers from a script, and refuses what OpenAI's own endpoint refuses."""

    script: list[Any]
    seen: list[list[dict[str, Any]]] = field(default_factory=list)

    async def create(self, *, model: str, messages: list[dict[str, Any]], tools: list[Any]) -> Any:
        self.seen.append(json.loads(json.dumps(messages)))
        waiting: set[str] = set()
        for message in messages:
            if message["role"] == "tool":
                assert message["tool_call_id"] in waiting, "400: a result of no call"
                waiting.discard(message["tool_call_id"])
                continue
            assert not waiting, f"400: 'tool_calls' must be followed by the results of {waiting}"
            waiting = {call["id"] for call in message.get("tool_calls", ())}
        assert not waiting, f"400: no results of {waiting}"
        if isinstance(answer := self.script.pop(0), OpenAIError):
            raise answer
        return SimpleNamespace(choices=[SimpleNamespace(message=answer)])


@dataclass
class Turn:
    """One turn of a conversation; another message of the user comes after `interrupted` replies."""

    turn_id: str
    conversation: list[ChatMessage]
    interrupted: int | None = None
    said: int = 0

    async def history(self) -> list[ChatMessage]:
        return list(self.conversation)

    async def say(self, text: str, **details: Any) -> None:
        self.said += 1
        self.conversation.append(ChatMessage(self.turn_id, "assistant", text, self.said, details))
        if self.said == self.interrupted:
            self.conversation.append(ChatMessage("next", "user", "and another thing"))


def calls(number: str) -> SimpleNamespace:
    return SimpleNamespace(content=None, tool_calls=[Called(number)])


def says(text: str) -> SimpleNamespace:
    return SimpleNamespace(content=text, tool_calls=None)


def agent_at(endpoint: Endpoint) -> OpenAIAgent:
    client: Any = SimpleNamespace(chat=SimpleNamespace(completions=endpoint))
    return OpenAIAgent("m", client=client, system="be brief")


async def answered(endpoint: Endpoint, turn: Any) -> None:
    await agent_at(endpoint).answer(turn)


async def test_turn_that_failed_after_a_tool_call_leaves_the_conversation_usable() -> None:
    conversation = [ChatMessage("t1", "user", "pay")]
    endpoint = Endpoint([calls("c1"), OpenAIError("503"), says("here"), says("and here")])
    with pytest.raises(ModelFailed):
        await answered(endpoint, Turn("t1", conversation))
    for turn_id in ("t2", "t3"):
        conversation.append(ChatMessage(turn_id, "user", "again?"))
        await answered(endpoint, Turn(turn_id, conversation))
    roles = [message["role"] for message in endpoint.seen[-1]]
    assert roles == ["system", "user", "assistant", "tool", "user", "assistant", "user"]
    assert "ended before" in endpoint.seen[-1][3]["content"]


async def test_message_that_came_between_a_call_and_its_result_is_after_the_answer() -> None:
    conversation = [ChatMessage("t1", "user", "pay")]
    endpoint = Endpoint([calls("c1"), says("paid"), says("yes?")])
    await answered(endpoint, Turn("t1", conversation, interrupted=1))
    await answered(endpoint, Turn("next", conversation))
    shown = [(message["role"], message.get("content")) for message in endpoint.seen[-1]]
    assert shown == [
        ("system", "be brief"),
        ("user", "pay"),
        ("assistant", None),
        ("tool", "error: there is no tool unknown_tool"),
        ("assistant", "paid"),
        ("user", "and another thing"),
    ]


async def test_recorded_answers_of_this_turn_are_asked_for_no_second_time() -> None:
    conversation = [ChatMessage("t1", "user", "pay")]
    await answered(Endpoint([calls("c1"), says("paid")]), Turn("t1", conversation))
    again = Endpoint([])
    await answered(again, Turn("t1", [*conversation]))
    assert again.seen == []
    assert [MESSAGES in one.details for one in conversation] == [False, True, True]
