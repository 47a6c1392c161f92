"""What the OpenAPI document says of a field, a header or a wait is what the gateway does."""

from __future__ import annotations

import time
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gateway.rest.parameters import PROPOSAL_WAIT_S
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def test_options_that_are_taken_are_those_of_the_openapi_document(doors: Doors, bot: Caller) -> None:
    document = doors.client.get(f"{doors.url}/openapi.json").json()
    schema = document["components"]["schemas"]["RequestHumanInput"]["properties"]["options"]
    options: list[Any] = ["a", 1.5, True, {"id": "a"}, {"id": 2, "label": "Two"}, {"id": False}]
    options += ["", None, [], ["a"], {"x": 1}, {"id": ""}, {"id": None}, {"id": {}}, {"value": "a"}, {}]
    for option in options:
        fits = Draft202012Validator(schema).is_valid([option])
        answer = bot.post("/v1/requests", {"question": "Which?", "kind": "decision", "options": [option]})
        assert answer.status_code == (201 if fits else 422), (option, answer.text)


@pytest.mark.parametrize(
    ("content", "taken", "refused"),
    [
        ({"kind": "permission"}, [True, False], ["yes", 1, None]),
        ({"kind": "permission", "options": ["once"]}, ["once", True], ["twice"]),
        ({"kind": "decision", "options": [{"id": "a"}, 2]}, ["a", 2], [{"id": "a"}, "2", True]),
        ({"kind": "decision"}, [{"any": [1]}, False], [" ", None]),
        ({"kind": "clarification", "options": ["a"]}, ["b", {"any": 1}], ["", None]),
    ],
)
def test_answers_that_are_taken_are_those_that_the_documents_name(
    bot: Caller, anna: Caller, content: dict[str, Any], taken: list[Any], refused: list[Any]
) -> None:
    for value, status in [*((one, 200) for one in taken), *((one, 422) for one in refused)]:
        hold_id = bot.post("/v1/requests", {"question": "May I?", **content}).json()["hold_id"]
        word = {"decision": "respond", "value": value}
        answer = anna.post(f"/v1/holds/{hold_id}/decision", word)
        assert answer.status_code == status, (value, answer.text)


@pytest.mark.parametrize(
    ("content", "taken", "refused"),
    [
        ({"kind": "permission"}, [False, None], [True, "no"]),
        ({"kind": "decision", "options": [{"id": "a"}]}, ["a", None], [{"id": "a"}, "b"]),
        ({"kind": "decision"}, [{"any": 1}, 0], [" "]),
        ({"kind": "clarification"}, ["b", {"any": 1}, None], [""]),
        ({"kind": "env_var", "fields": ["A"]}, [None], ["a", {"A": "a"}]),
    ],
)
def test_defaults_that_are_taken_are_those_that_the_documents_name(
    bot: Caller, content: dict[str, Any], taken: list[Any], refused: list[Any]
) -> None:
    for value, status in [*((one, 201) for one in taken), *((one, 422) for one in refused)]:
        answer = bot.post("/v1/requests", {"question": "May I?", "default": value, **content})
        assert answer.status_code == status, (value, answer.text)


def test_proposal_is_answered_when_it_is_held_and_waits_for_a_person_as_long_as_it_says(bot: Caller) -> None:
    execution_id = bot.execution()
    took = {}
    for query in ("?wait=0", ""):
        began = time.monotonic()
        body = {"tool": "send_money", "arguments": {"amount": 5}}
        answer = bot.post(f"/v1/executions/{execution_id}/tool-calls{query}", body)
        took[query] = time.monotonic() - began
        assert (answer.status_code, answer.json()["status"]) == (202, "held")
    assert took["?wait=0"] < PROPOSAL_WAIT_S <= took[""]


def test_headers_of_an_answer_are_those_of_the_openapi_document(doors: Doors) -> None:
    said = doors.client.get(f"{doors.url}/openapi.json").json()["info"]["description"]
    refused = doors.client.get(f"{doors.url}/v1/executions")
    assert (refused.status_code, "WWW-Authenticate" in refused.headers) == (401, True)
    for name in ("X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"):
        assert f"{name}: {refused.headers[name]}" in said
    assert "Content-Security-Policy" in said
    assert "Content-Security-Policy" in refused.headers
