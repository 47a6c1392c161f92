"""The tool `human_input` over REST, by the requests that its earlier users send, word for word."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest

from schemas.limits import TEXT_MAX_CHARS
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]

# As `curl -d` sends it: with the media type of a form.
RUN = """{
"name": "human_input",
"arguments": {
"prompt": "Следующий шаг — удаление учетной записи пользователя. Вы одобряете?"
}
}"""
FORM = {"content-type": "application/x-www-form-urlencoded"}
ANSWER = "Да, я одобряю. Продолжайте удаление."


def run_tool(caller: Caller, content: str = RUN, **headers: str) -> httpx.Response:
    own = {"authorization": f"Bearer {caller.token}", **FORM, **headers}
    return httpx.post(f"{caller.url}/v1/tools:run", content=content.encode(), headers=own, timeout=30)


def task_of(answer: httpx.Response) -> str:
    fields = answer.json()["result"]["structValue"]["fields"]
    assert fields["status"] == {"stringValue": "waiting_for_human"}
    return str(fields["task_id"]["stringValue"])


def decide(person: Caller, bot: Caller, task_id: str, **word: Any) -> None:
    request = bot.get(f"/v1/requests/{task_id}").json()
    hold = person.get(f"/v1/holds/{request['hold_id']}").json()
    answer = person.post(f"/v1/holds/{hold['hold_id']}/decision", {"digest": hold["digest"], **word})
    assert answer.status_code == 200, answer.text


def test_prompt_is_asked_at_once_and_its_answer_fetched_by_the_task_id(bot: Caller, anna: Caller) -> None:
    answer = run_tool(bot)
    assert answer.status_code == 200
    task_id = task_of(answer)
    waiting = bot.get(f"/v1/human-input/{task_id}")
    assert (waiting.status_code, waiting.json()) == (
        202,
        {"status": "waiting_for_human", "task_id": task_id},
    )
    request = bot.get(f"/v1/requests/{task_id}").json()
    assert request["question"].startswith("Следующий шаг")

    later = threading.Timer(0.3, decide, (anna, bot, task_id), {"decision": "respond", "value": ANSWER})
    later.start()
    found = bot.get(f"/v1/human-input/{task_id}?wait=30")
    later.join()
    assert (found.status_code, found.json()) == (200, {"response": ANSWER})


def test_prompt_that_a_person_rejects_has_no_response_and_says_why(bot: Caller, anna: Caller) -> None:
    task_id = task_of(run_tool(bot))
    decide(anna, bot, task_id, decision="reject", feedback="ask the owner")
    expected = {"response": None, "status": "rejected", "feedback": "ask the owner"}
    assert bot.get(f"/v1/human-input/{task_id}").json() == expected


def test_prompt_of_a_run_that_was_cancelled_has_no_response(bot: Caller, anna: Caller) -> None:
    task_id = task_of(run_tool(bot))
    execution_id = bot.get(f"/v1/requests/{task_id}").json()["execution_id"]
    assert bot.post(f"/v1/executions/{execution_id}/cancel", {}).status_code == 200
    found = bot.get(f"/v1/human-input/{task_id}").json()
    assert (found["response"], found["status"]) == (None, "cancelled")


def test_prompt_repeated_under_one_key_is_one_task(bot: Caller) -> None:
    first, again = (run_tool(bot, **{"idempotency-key": "prompt-1"}) for _ in range(2))
    assert first.content == again.content
    other = RUN.replace("Вы одобряете", "Точно")
    refused = run_tool(bot, other, **{"idempotency-key": "prompt-1"})
    assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("content", "status", "code", "path"),
    [
        ("{", 400, "malformed", None),
        ("[]", 400, "malformed", None),
        ('{"name": "human_input"}', 422, "invalid", "arguments"),
        ('{"name": "rm", "arguments": {"prompt": "?"}}', 422, "invalid", "name"),
        ('{"name": "human_input", "arguments": {"prompt": ""}}', 422, "invalid", "arguments.prompt"),
        ('{"name": "human_input", "arguments": {"prompt": 5}}', 422, "invalid", "arguments.prompt"),
        ('{"name": "human_input", "arguments": {"prompt": "?", "x": 1}}', 422, "invalid", "arguments.x"),
        ('{"name": "human_input", "arguments": {"prompt": "  "}}', 422, "invalid", None),
    ],
)
def test_prompt_that_nobody_can_be_asked_is_refused(
    bot: Caller, content: str, status: int, code: str, path: str | None
) -> None:
    answer = run_tool(bot, content)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert path is None or [error["path"] for error in answer.json()["errors"]] == [path]


def test_token_of_no_agent_is_refused_with_what_to_do(admin: Caller) -> None:
    answer = run_tool(admin, '{"name": "human_input", "arguments": {"prompt": "?"}}')
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert "use a token that was issued for the agent that asks" in answer.json()["detail"]
    assert "placet token issue --subject NAME --role agent --agent NAME" in answer.json()["detail"]
    assert "in `agent`" not in answer.json()["detail"]
    started = admin.post("/v1/executions", {})
    assert started.status_code == 422
    assert "name the agent of the new execution in `agent`, or use a token" in started.json()["detail"]


def test_prompt_over_its_limit_is_refused_and_at_its_limit_asked(bot: Caller) -> None:
    content = '{"name": "human_input", "arguments": {"prompt": "%s"}}'
    assert task_of(run_tool(bot, content % ("я" * TEXT_MAX_CHARS)))
    assert run_tool(bot, content % ("я" * (TEXT_MAX_CHARS + 1))).json()["code"] == "invalid"


def test_task_of_nobody_or_of_others_is_not_found(doors: Doors, bot: Caller) -> None:
    task_id = task_of(run_tool(bot))
    others = (
        doors.caller("bot", "agent", agent="mailer"),
        doors.caller("bot", "agent", agent="billing", tenant="other"),
    )
    for caller, name in ((bot, "nobody"), *((other, task_id) for other in others)):
        answer = caller.get(f"/v1/human-input/{name}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert httpx.get(f"{bot.url}/v1/human-input/{task_id}").status_code == 401
