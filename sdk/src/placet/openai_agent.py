"""An agent on any endpoint with OpenAI's chat completions: its model answers the messages of a conversation.

Each answer of the model is posted as a reply, with the messages that it consists of in the reply's `details`
(`MESSAGES`), before anything that it asks for is done. So a process that takes the turn on after another one
continues with the model's recorded answers, and makes the same calls, which return what they returned before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from openai import AsyncOpenAI, OpenAIError
from openai.types.chat import ChatCompletion, ChatCompletionMessage

from placet.chat_models import ChatMessage
from placet.errors import PlacetError
from placet.recording import recordable_failure
from placet.registering import declared, definition_of
from placet.turn import AsyncTurn

Message = dict[str, Any]
MESSAGES = "openai_messages"
STEPS_MAX = 25
_NO_RESULT = "error: the turn ended before this call's result was recorded; what it did is not known here"
ASK = "ask_human"
ASK_TOOL: Message = {
    "type": "function",
    "function": {
        "name": ASK,
        "description": "Ask the person something that you need to know, and wait for the answer.",
        "parameters": {
            "type": "object",
            "properties": {
                "question": {"type": "string"},
                "options": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["question"],
        },
    },
}


class ModelFailed(PlacetError):
    """The model's endpoint refused the request, or did not answer in time."""


class _NoSuchCall(PlacetError):
    """What the model asks for cannot be called; its text is for the model."""


class OpenAIAgent:
    """Answers messages by a model; register it with `placet.agent(name)(OpenAIAgent(…).answer)`."""

    def __init__(
        self,
        model: str,
        *,
        client: AsyncOpenAI,
        system: str = "",
        tools: Sequence[Callable[..., Any]] = (),
        steps_max: int = STEPS_MAX,
    ) -> None:
        """Prepare an agent.

        Args:
            model: its name at the endpoint.
            client: of the endpoint, with its address and key.
            system: the instructions that come before every conversation.
            tools: the functions that the model can call, each decorated with `placet.gated`.
            steps_max: how many answers of the model one turn may take; the turn fails if the last still calls tools.

        Raises:
            TypeError: a tool is not gated.
        """
        self._model = model
        self._client = client
        self._system = system
        self._described = [ASK_TOOL, *map(_described, tools)]
        self._tools = {
            one["function"]["name"]: tool for one, tool in zip(self._described[1:], tools, strict=True)
        }
        self._steps_max = steps_max

    async def answer(self, turn: AsyncTurn) -> None:
        """Answer one message.

        Raises:
            ModelFailed: the model's endpoint did not answer, or the model called tools in its last answer, too.
        """
        messages, recorded = await self._so_far(turn)
        results: list[Message] = []
        for _ in range(self._steps_max):
            new = recorded.pop(0) if recorded else [*results, await self._asked([*messages, *results])]
            said = new[-1]
            await turn.say(said.get("content") or "", **{MESSAGES: new})
            messages += new
            calls = said.get("tool_calls")
            if not calls:
                return
            results = [await self._called(turn, call) for call in calls]
        raise ModelFailed(
            f"the model {self._model} answered {self._steps_max} times in this turn and called tools each time, "
            f"and a turn has at most {self._steps_max} answers of its model (steps_max)"
        )

    async def _so_far(self, turn: AsyncTurn) -> tuple[list[Message], list[list[Message]]]:
        """The conversation up to this turn's message, and the model's answers in this turn that are recorded."""
        messages: list[Message] = [{"role": "system", "content": self._system}] if self._system else []
        recorded: list[list[Message]] = []
        # By turn: a message that came while an earlier one was answered is after that answer.
        turns: dict[str, list[Message]] = {}
        for one in await turn.history():
            if one.role == "user":
                turns.setdefault(one.turn_id, []).append({"role": "user", "content": one.text})
            elif one.turn_id == turn.turn_id:
                recorded.append(_recorded(one))
            else:
                turns.setdefault(one.turn_id, []).extend(_recorded(one))
        for turn_id, found in turns.items():
            messages += found
            if turn_id == turn.turn_id:
                # Messages that came later are answered in turns of their own.
                break
            messages += _unanswered(messages)
        return messages, recorded

    async def _asked(self, messages: list[Message]) -> Message:
        """The model's next answer, as a message."""
        try:
            answer = await self._client.chat.completions.create(
                model=self._model,
                messages=messages,  # type: ignore[arg-type]
                tools=self._described,  # type: ignore[arg-type]
            )
        except OpenAIError as error:
            raise ModelFailed(f"the model {self._model} did not answer: {error}") from error
        except ValueError as error:
            raise ModelFailed(self._no_completion()) from error
        if not isinstance(answer, ChatCompletion):
            # What the client returns of an answer that is not JSON.
            raise ModelFailed(self._no_completion())
        if not answer.choices:
            raise ModelFailed(f"the model {self._model} answered without a message")
        return self._message(answer.choices[0].message)

    def _message(self, said: ChatCompletionMessage) -> Message:
        # The client checks no types: it returns what the endpoint sent.
        if not isinstance(said, ChatCompletionMessage) or not isinstance(said.content, str | None):
            raise ModelFailed(self._no_completion())
        message: Message = {"role": "assistant", "content": said.content}
        if said.tool_calls:
            message["tool_calls"] = [call.model_dump(mode="json") for call in said.tool_calls]
        return message

    def _no_completion(self) -> str:
        return (
            f"the endpoint of the model {self._model} did not answer with a chat completion: is its address (base "
            "URL), which often ends in /v1, right?"
        )

    async def _called(self, turn: AsyncTurn, call: Mapping[str, Any]) -> Message:
        """Do what the model asks for; the result, also a refusal, is a message for the model."""
        function = call["function"]
        try:
            content = await self._result(turn, function["name"], function["arguments"])
        except PlacetError as error:
            if error.acts != "stop":
                raise
            content = f"error: {error}"
        except Exception as error:
            # Also of the tool: run by an earlier attempt, it would be a ToolFailed, which the model is told.
            told = recordable_failure(error, await turn.run.channel.is_exposed())
            told.go_on()
            content = f"error: {told.value}"
        return {"role": "tool", "tool_call_id": call["id"], "content": content}

    async def _result(self, turn: AsyncTurn, name: str, arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
        except ValueError as error:
            raise _NoSuchCall(f"the arguments are not JSON: {error}") from error
        if not isinstance(given, dict):
            raise _NoSuchCall("the arguments are not an object")
        if name == ASK:
            return await _asked_person(turn, given)
        if name not in self._tools:
            raise _NoSuchCall(f"there is no tool {name}")
        return _text(await self._tools[name](**given))


async def _asked_person(turn: AsyncTurn, given: Mapping[str, Any]) -> str:
    question, options = given.get("question"), given.get("options", [])
    if not isinstance(question, str) or not isinstance(options, list):
        raise _NoSuchCall("question is a text, and options are a list")
    return _text(await turn.hitl.request_clarification(question, options=options))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _recorded(one: ChatMessage) -> list[Message]:
    found = one.details.get(MESSAGES)
    return found if isinstance(found, list) else [{"role": "assistant", "content": one.text}]


def _unanswered(messages: list[Message]) -> list[Message]:
    """Results for the tools that the last answer called and that have none: endpoints refuse a call without one.

    Its turn failed before the model's next answer, with which results are recorded.
    """
    calls = messages[-1].get("tool_calls") if messages else None
    return [{"role": "tool", "tool_call_id": call["id"], "content": _NO_RESULT} for call in calls or ()]


def _described(tool: Callable[..., Any]) -> Message:
    definition = definition_of(*declared(tool))
    return {
        "type": "function",
        "function": {
            "name": definition["name"],
            "description": definition.get("description", definition["name"]),
            "parameters": definition["inputSchema"],
        },
    }
