"""A message or question that is refused for what can be checked first leaves no execution behind."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker, pytest.mark.timeout(180)]


def fresh() -> str:
    return f"new-{uuid4().hex[:10]}"


def check_nothing_opened(caller: Caller, reader: Caller, agent: str) -> None:
    """What an agent opens now is its first execution."""
    opened = caller.execution()
    after = caller.get(f"/v1/executions/{opened}").json()["cursor"]
    listed = reader.get(f"/v1/executions?agent={agent}&after={after}").json()["items"]
    assert [one["execution_id"] for one in listed] == [opened]


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        (" \n", {}),
        ("hello", {"Last-Event-ID": "garbage"}),
        ("hello", {"Idempotency-Key": "k" * 1_000}),
    ],
    ids=["nothing said", "no cursor", "no key"],
)
@pytest.mark.parametrize("is_named", [False, True])
def test_message_that_is_refused_opens_no_conversation(
    doors: Doors, anna: Caller, text: str, headers: dict[str, str], is_named: bool
) -> None:
    name, conversation_id = fresh(), fresh()
    caller = doors.caller("web", "agent", agent=name)
    body = {"message": text} | ({"conversation_id": conversation_id} if is_named else {})
    answer = caller.post("/agent/chat", body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    check_nothing_opened(caller, anna, name)


@pytest.mark.parametrize("path", ["/v1/requests", "/v1/tools:run"])
def test_question_that_says_nothing_opens_no_execution(doors: Doors, anna: Caller, path: str) -> None:
    name = fresh()
    caller = doors.caller(name, "agent", agent=name)
    tool = {"name": "human_input", "arguments": {"prompt": " "}}
    answer = caller.post(path, {"question": " "} if path == "/v1/requests" else tool)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    check_nothing_opened(caller, anna, name)
