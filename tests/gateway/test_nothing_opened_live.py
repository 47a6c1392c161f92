"""A message or question that is refused for what can be checked first leaves no execution behind."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]


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
        ("\u200b\u2060", {}),
        ("hello", {"Last-Event-ID": "garbage"}),
        ("hello", {"Idempotency-Key": "k" * 1_000}),
    ],
    ids=["nothing said", "nothing seen", "no cursor", "no key"],
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


@pytest.mark.parametrize("said", [" ", "\ufeff\u200b"], ids=["white space", "unseen"])
@pytest.mark.parametrize("path", ["/v1/requests", "/v1/tools:run"])
def test_question_that_says_nothing_opens_no_execution(
    doors: Doors, anna: Caller, path: str, said: str
) -> None:
    name = fresh()
    caller = doors.caller(name, "agent", agent=name)
    tool = {"name": "human_input", "arguments": {"prompt": said}}
    answer = caller.post(path, {"question": said} if path == "/v1/requests" else tool)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    check_nothing_opened(caller, anna, name)


FIELDS = {"kind": "env_var", "fields": ["TOKEN"]}
WRONG_QUESTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "options alike": ({"options": ["a", "a"]}, "invalid"),
    "ids alike": ({"kind": "decision", "options": [{"id": 1}, 1]}, "invalid"),
    "option without id": ({"options": [{"label": "a"}]}, "invalid"),
    "option is a list": ({"options": [["a"]]}, "invalid"),
    "option says nothing": ({"options": [""]}, "invalid"),
    "option too large": ({"options": ["a" * 600_000]}, "too_large"),
    "several options": ({"options": list(range(101))}, "invalid"),
    "a number that others misread": ({"options": [2**60]}, "malformed"),
    "a field of a decision": ({"allow_custom": True, "options": ["a"]}, "invalid"),
    "a field of a permission": ({"kind": "decision", "tool": "shell"}, "invalid"),
    "no options": ({"kind": "decision", "multiple": True}, "invalid"),
    "default is no option": ({"kind": "decision", "options": ["a"], "default": "b"}, "unknown_option"),
    "default is no list": (
        {"kind": "decision", "options": ["a"], "multiple": True, "default": "a"},
        "invalid",
    ),
    "default grants": ({"kind": "permission", "default": True}, "invalid"),
    "default says nothing": ({"default": " "}, "invalid"),
    "nothing is seen of a default": ({"default": "\u200b"}, "invalid"),
    "default is misread": ({"default": 2**60}, "malformed"),
    "reminder after the end": ({"timeout_seconds": 5, "remind_after_seconds": 5}, "invalid"),
    "no variables": ({"kind": "env_var"}, "invalid"),
    "no name of a variable": ({"kind": "env_var", "fields": ["1x"]}, "invalid"),
    "variable is no object": ({"kind": "env_var", "fields": [7]}, "invalid"),
    "variable twice": ({"kind": "env_var", "fields": ["A", {"name": "A"}]}, "invalid"),
    "no field of a variable": ({"kind": "env_var", "fields": [{"name": "A", "kind": "x"}]}, "invalid"),
    "wrong field of a variable": ({"kind": "env_var", "fields": [{"name": "A", "secret": 1}]}, "invalid"),
    "no pattern": ({"kind": "env_var", "fields": [{"name": "A", "pattern": "("}]}, "invalid"),
    "slow pattern": ({"kind": "env_var", "fields": [{"name": "A", "pattern": r"(a)\1"}]}, "invalid"),
    "options of variables": (FIELDS | {"options": ["a"]}, "invalid"),
    "default of variables": (FIELDS | {"default": {"TOKEN": "x"}}, "invalid"),
}


@pytest.mark.parametrize(("wrong", "code"), WRONG_QUESTIONS.values(), ids=list(WRONG_QUESTIONS))
def test_question_that_is_refused_in_any_state_opens_no_execution(
    doors: Doors, anna: Caller, wrong: dict[str, Any], code: str
) -> None:
    name = fresh()
    caller = doors.caller(name, "agent", agent=name)
    answer = caller.post("/v1/requests", {"question": "Which?", **wrong})
    assert answer.json()["code"] == code, answer.text
    check_nothing_opened(caller, anna, name)


def test_question_is_refused_as_it_is_in_an_execution_that_runs(doors: Doors) -> None:
    name = fresh()
    caller = doors.caller(name, "agent", agent=name)
    execution_id = caller.execution()
    for wrong, code in WRONG_QUESTIONS.values():
        question = {"question": "Which?", **wrong}
        alone = caller.post("/v1/requests", question).json()
        within = caller.post("/v1/requests", question | {"execution_id": execution_id}).json()
        assert (within["code"], within["detail"]) == (code, alone["detail"])
