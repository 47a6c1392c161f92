"""The messages that a model's endpoint gets: those that it accepts, whatever became of earlier turns."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from openai import OpenAIError
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice

import placet
from placet.chat_models import ChatMessage
from placet.openai_agent import MESSAGES, ModelFailed, OpenAIAgent


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
        if isinstance(answer, ChatCompletionMessage):
            choices = [Choice(finish_reason="stop", index=0, message=answer)]
            return ChatCompletion.construct(choices=choices)
        return answer


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


def calls(number: str, tool: str = "unknown_tool", **arguments: Any) -> ChatCompletionMessage:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": number, "type": "function", "function": function}
    return ChatCompletionMessage.model_validate({"role": "assistant", "tool_calls": [call]})


def says(text: Any) -> ChatCompletionMessage:
    return ChatCompletionMessage.construct(role="assistant", content=text)


def agent_at(endpoint: Endpoint, *tools: Any) -> OpenAIAgent:
    client: Any = SimpleNamespace(chat=SimpleNamespace(completions=endpoint))
    return OpenAIAgent("m", client=client, system="be brief", tools=tools)


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


@pytest.mark.parametrize(
    "answer",
    [
        "<html>",
        ["x"],
        None,
        says([{"type": "text", "text": "parts"}]),
        json.JSONDecodeError("x", "<html>", 0),
    ],
    ids=["text", "list", "nothing", "parts", "no JSON"],
)
async def test_endpoint_that_answers_with_no_chat_completion_is_named(answer: Any) -> None:
    turn = Turn("t1", [ChatMessage("t1", "user", "pay")])
    with pytest.raises(ModelFailed, match="did not answer with a chat completion: is its address"):
        await answered(Endpoint([answer]), turn)


@pytest.mark.parametrize("is_exposed", [False, True])
async def test_tool_that_fails_is_told_to_the_model(is_exposed: bool) -> None:
    @placet.gated(tool="close")
    async def close(account: str) -> str:
        return account

    async def failing(**arguments: Any) -> str:
        raise RuntimeError("the bank is closed")

    class Exposed:
        async def is_exposed(self) -> bool:
            return is_exposed

    endpoint = Endpoint([calls("c1", "close", account="7"), says("sorry")])
    agent = agent_at(endpoint, close)
    agent._tools["close"] = failing
    turn: Any = Turn("t1", [ChatMessage("t1", "user", "close it")])
    turn.run = SimpleNamespace(channel=Exposed())
    await agent.answer(turn)
    told = endpoint.seen[-1][-1]["content"]
    assert ("the bank is closed" in told) is not is_exposed
    assert told.startswith("error: RuntimeError")


async def test_answer_of_a_person_that_is_no_text_is_json_for_the_model() -> None:
    class Person:
        async def request_clarification(self, question: str, *, options: list[str]) -> Any:
            return {"a": True, "b": [1, None]}

    endpoint = Endpoint([calls("c1", "ask_human", question="Which?"), says("so")])
    turn: Any = Turn("t1", [ChatMessage("t1", "user", "go")])
    turn.hitl = Person()
    await agent_at(endpoint).answer(turn)
    assert endpoint.seen[-1][-1]["content"] == '{"a": true, "b": [1, null]}'
