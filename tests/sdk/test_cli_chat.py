"""`placet chat` at a scripted gateway: questions until they are answered, conversations that there are not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import typer
from starlette.responses import JSONResponse, Response, StreamingResponse

from placet.cli import chat, inputs
from tests.sdk.scripted import Asked, Scripted
from tests.sdk.terminal import Terminal
from tests.sdk.threaded import serving_thread

QUESTION: dict[str, Any] = {
    "hold_id": "h1",
    "request_id": "r1",
    "execution_id": "c1",
    "status": "open",
    "kind": "decision",
    "question": "Where?",
    "digest": "d" * 64,
    "options": [{"id": "production", "label": "Production"}, "staging"],
}
REFUSALS = {
    "unknown_option": (422, "the value is none of the options"),
    "already_decided": (409, "mia decided it first"),
    "not_authorised": (403, "an agent's token cannot decide"),
}


def event(name: str, **body: Any) -> str:
    return f"id: k\nevent: {name}\ndata: {json.dumps(body)}\n\n"


@dataclass
class Desk:
    """A gateway with one agent, which asks one question, several times; and the person at the terminal.

    Attributes:
        question: what the agent asks.
        times: how often the stream tells of it.
        codes: what the gateway says to each answer; it accepts one more.
        typed: what the person types at each prompt.
        prompts: what the person was prompted with.
    """

    question: dict[str, Any] = field(default_factory=lambda: QUESTION)
    times: int = 1
    codes: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    prompts: list[tuple[str, bool]] = field(default_factory=list)
    claims: int = 1

    def __post_init__(self) -> None:
        self.looked = asyncio.Event()

    async def http(self, asked: Asked) -> Response:
        if asked.path == "/agent/chat":
            return StreamingResponse(self.stream(), media_type="text/event-stream")
        if asked.path == "/v1/holds/h1":
            return JSONResponse(self.question)
        if asked.path.endswith("/decision"):
            if not self.codes:
                return JSONResponse({"status": "resolved", "decision_id": "d1"})
            code = self.codes.pop(0)
            status, detail = REFUSALS[code]
            return JSONResponse({"code": code, "status": status, "detail": detail}, status)
        if "/turns/" in asked.path:
            self.looked.set()
            return JSONResponse({"status": "waiting", "claims": self.claims, "agent": "nobodyhome"})
        if asked.path == "/v1/executions/c1":
            return JSONResponse({"execution_id": "c1", "state": "running"})
        return JSONResponse({"code": "not_found", "detail": f"no {asked.path}"}, 404)

    async def stream(self) -> AsyncIterator[str]:
        if chat.UNCLAIMED_AFTER_S < 1:
            await self.looked.wait()
        for _ in range(self.times):
            yield event("hitl_requested", **self.question)
        yield event("message", text="done")
        yield event("complete", status="completed")

    def prompt(self, text: str, *, hide_input: bool = False, **_: Any) -> str:
        self.prompts.append((text, hide_input))
        return self.typed.pop(0)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    made = Desk()
    monkeypatch.setattr(chat, "is_interactive", lambda: True)
    monkeypatch.setattr(inputs, "is_interactive", lambda: True)
    monkeypatch.setattr(typer, "prompt", made.prompt)
    return made


@pytest.fixture
def terminal(desk: Desk, capsys: pytest.CaptureFixture[str]) -> Iterator[Terminal]:
    with serving_thread(Scripted(on_http=desk.http)) as script:
        yield Terminal(script, capsys)


def answers(terminal: Terminal) -> list[Any]:
    return [asked.json()["value"] for asked in terminal.sent() if asked.path.endswith("/decision")]


def test_question_is_asked_again_until_an_answer_is_accepted(desk: Desk, terminal: Terminal) -> None:
    desk.codes, desk.typed = ["unknown_option"], ["nonsense", " ", "staging"]
    assert terminal("chat", "go", "--agent", "a") == 0
    assert answers(terminal) == ["nonsense", "staging"]
    assert "[not accepted: unknown_option: the value is none of the options]" in terminal.err
    assert "[not accepted: an answer must not be blank" in terminal.err
    assert "options: production (Production), staging" in terminal.err
    assert terminal.out == "done\n"


@pytest.mark.parametrize(
    ("question", "typed", "value"),
    [
        ({}, "Production", "production"),
        ({"asks": {"multiple": True}}, '["production", "staging"]', ["production", "staging"]),
        ({"asks": {"multiple": True}}, '["Production"]', ["production"]),
        ({"kind": "permission", "options": []}, "yes", True),
        ({"kind": "permission", "options": []}, "No", False),
        ({"options": [1, 2]}, "2", 2),
        ({"options": [], "kind": "clarification", "input_schema": {"type": "string"}}, "2", "2"),
    ],
)
def test_answer_is_read_as_placet_answer_reads_it(
    desk: Desk, terminal: Terminal, question: dict[str, Any], typed: str, value: Any
) -> None:
    desk.question, desk.typed = {**QUESTION, **question}, [typed]
    assert terminal("chat", "go", "--agent", "a") == 0
    assert answers(terminal) == [value]
    assert type(answers(terminal)[0]) is type(value)


def test_word_that_is_no_answer_to_a_permission_is_no_refusal_of_it(desk: Desk, terminal: Terminal) -> None:
    desk.question, desk.typed = {**QUESTION, "kind": "permission", "options": []}, ["yep", "yes"]
    assert terminal("chat", "go", "--agent", "a") == 0
    assert answers(terminal) == [True]
    assert '[not accepted: "yep" is not one of the answers: yes, no]' in terminal.err


def test_variables_are_prompted_for_without_being_shown(desk: Desk, terminal: Terminal) -> None:
    fields = ["API_KEY", {"name": "REGION", "secret": False}]
    desk.question = {**QUESTION, "kind": "env_var", "options": [], "fields": fields}
    desk.typed = ["s3cret", "eu"]
    assert terminal("chat", "go", "--agent", "a") == 0
    assert desk.prompts == [("API_KEY", True), ("REGION", False)]
    assert answers(terminal) == [{"API_KEY": "s3cret", "REGION": "eu"}]


@pytest.mark.parametrize("code", ["not_authorised", "already_decided"])
def test_question_that_cannot_be_answered_here_is_told_once_and_the_stream_goes_on(
    desk: Desk, terminal: Terminal, code: str
) -> None:
    desk.codes, desk.typed, desk.times = [code], ["staging"], 2
    assert terminal("chat", "go", "--agent", "a") == 0
    assert len(desk.prompts) == 1
    assert f"[not accepted: {code}: {REFUSALS[code][1]}]" in terminal.err
    hint = "[it waits for somebody who may answer it: placet answer h1 VALUE]"
    assert (hint in terminal.err) is (code == "not_authorised")
    assert terminal.out == "done\n"


def test_conversation_that_does_not_exist_is_not_begun(desk: Desk, terminal: Terminal) -> None:
    assert terminal("chat", "go", "--conversation", "typo") == 1
    assert "not_found: no conversation typo; to begin one: placet chat --agent NAME" in terminal.err
    assert terminal.sent() == []


@pytest.mark.parametrize("where", [("--conversation", "c1"), ("--conversation", "new", "--agent", "a")])
def test_conversation_that_exists_goes_on_and_one_is_begun_under_a_chosen_id(
    desk: Desk, terminal: Terminal, where: tuple[str, ...]
) -> None:
    desk.typed = ["staging"]
    assert terminal("chat", "go", *where) == 0
    (message,) = [asked.json() for asked in terminal.sent() if asked.path == "/agent/chat"]
    assert message["conversation_id"] == where[1]


@pytest.mark.parametrize("claims", [0, 1])
def test_message_that_no_worker_takes_on_is_told(
    desk: Desk, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, claims: int
) -> None:
    monkeypatch.setattr(chat, "UNCLAIMED_AFTER_S", 0.05)
    desk.claims, desk.typed = claims, ["staging"]
    assert terminal("chat", "go", "--agent", "nobodyhome") == 0
    told = terminal.err.count("[no worker of nobodyhome has taken the message on yet")
    assert told == (1 if claims == 0 else 0)
