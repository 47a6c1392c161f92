"""Answers over the human bridge: to every question that it publishes, in any JSON; and refusals in its own words."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.problems import Problem
from gateway.sockets.bridge_messages import BridgeMessages
from schemas.refusals import Refusal
from tests.gateway.conftest import Caller
from tests.gateway.test_human_bridge_live import bridge_of, fresh

pytestmark = [pytest.mark.stack, pytest.mark.broker]

QUESTIONS: dict[str, tuple[dict[str, Any], Any]] = {
    "permission": ({"kind": "permission", "tool": "shell"}, True),
    "permission that is refused": ({"kind": "permission"}, False),
    "permission to remember": (
        {"kind": "permission", "remember": True},
        {"granted": True, "remember": False},
    ),
    "number": ({"kind": "decision", "options": [1, 2]}, 1),
    "several": ({"kind": "decision", "options": ["a", 2], "multiple": True}, ["a", 2]),
    "text of a boolean": ({}, "true"),
    "object": ({}, {"at": [1.5, None]}),
}


@pytest.mark.parametrize(("question", "response"), QUESTIONS.values(), ids=list(QUESTIONS))
async def test_every_question_that_is_published_can_be_answered(
    bot: Caller, anna: Caller, question: dict[str, Any], response: Any
) -> None:
    task_id = fresh()
    async with bridge_of(anna) as person:
        bot.post("/v1/requests", {"request_id": task_id, "question": "Go on?", **question})
        await person.next("publish", task_id=task_id)
        for _ in range(2):
            await person.send(type="answer", task_id=task_id, response=response)
            await person.next("answered", task_id=task_id)
        assert (await person.next("answer", task_id=task_id))["response"] == response
        # Null rejects, which false does as well.
        other = True if response is False else None
        await person.send(type="answer", task_id=task_id, response=other)
        assert (await person.next("error", task_id=task_id))["code"] == "already_decided"
    assert bot.get(f"/v1/human-input/{task_id}").json() == {"response": response}


async def test_text_is_no_option_that_looks_like_it(bot: Caller, anna: Caller) -> None:
    task_id = fresh()
    bot.post("/v1/requests", {"request_id": task_id, "question": "Go on?", "kind": "permission"})
    async with bridge_of(anna) as person:
        await person.send(type="answer", task_id=task_id, response="true")
        assert (await person.next("error", task_id=task_id))["code"] == "unknown_option"


async def test_null_rejects_with_feedback(bot: Caller, anna: Caller) -> None:
    task_id = fresh()
    bot.post("/v1/requests", {"request_id": task_id, "question": "Go on?", "kind": "permission"})
    async with bridge_of(anna) as person:
        await person.next("publish", task_id=task_id)
        await person.send(type="answer", task_id=task_id)
        assert (await person.next("error", task_id=task_id))["detail"].startswith("response: ")
        await person.send(type="answer", task_id=task_id, response=None, feedback="ask the owner")
        closed = await person.next("closed", task_id=task_id)
        assert (closed["status"], closed["feedback"]) == ("rejected", "ask the owner")


@pytest.mark.parametrize("names_hold", [False, True])
async def test_variables_cannot_be_given_in_a_chat_but_be_refused_there(
    bot: Caller, anna: Caller, names_hold: bool
) -> None:
    task_id = fresh()
    asked = {"request_id": task_id, "question": "The key?", "kind": "env_var", "fields": ["KEY"]}
    hold_id = bot.post("/v1/requests", asked).json()["hold_id"]
    more = {"hold_id": hold_id} if names_hold else {}
    async with bridge_of(anna) as person:
        await person.send(type="answer", task_id=task_id, response={"KEY": "x"}, **more)
        refused = await person.next("error", task_id=task_id)
        assert refused["detail"].startswith("variables are not answered here")
        assert bot.get(f"/v1/requests/{task_id}").json()["status"] == "open"
        await person.send(type="answer", task_id=task_id, response=None, **more)
        await person.next("answered", task_id=task_id)


async def test_refusals_name_the_fields_of_the_bridge(bot: Caller) -> None:
    async with bridge_of(bot) as agent:
        for message, name in (({"prompt": " "}, "prompt"), ({"prompt": "x", "task_id": "/"}, "task_id")):
            await agent.send(type="publish", **message)
            assert (await agent.next("error"))["detail"].startswith(name)


def test_refusal_of_a_command_is_told_in_the_words_of_the_message_that_led_to_it() -> None:
    messages = BridgeMessages()
    sent = messages.from_client({"type": "answer", "task_id": "t", "response": "x"})
    errors = [{"path": "value", "code": "x", "message": "x"}, {"path": "values", "code": "x", "message": "x"}]
    problem = Problem(Refusal.TOO_LARGE, "value is over 262144 bytes", errors=errors)
    reply = {"type": "reply", "ref": sent["ref"], "status": problem.status, "body": problem.document()}
    (told,) = messages.to_client(reply)
    assert told["detail"] == "response is over 262144 bytes"
    assert [error["path"] for error in told["errors"]] == ["response", "values"]
