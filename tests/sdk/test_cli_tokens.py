"""What the terminal says of the roles in its own token, and of the project and the address that it was given."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet.cli import run
from placet.cli.app import explained
from placet.cli.token_roles import roles_in
from placet.errors import NoAnswer, Unreachable
from tests.sdk.scripted import Asked
from tests.sdk.terminal import HOLD, Terminal

FOR_READING = "this needs one of the roles reviewer, operator, auditor"


def token_of(payload: Any) -> str:
    part = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return f"e30.{urlsafe_b64encode(part).decode().rstrip('=')}.sig"


def ran(
    terminal: Terminal, capsys: pytest.CaptureFixture[str], token: str, *arguments: str
) -> tuple[int, str]:
    code = run(["--url", terminal.script.url, "--token", token, *arguments])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    "token",
    [
        "t",
        "a.b",
        "e30.\u00e9.sig",
        "e30.a.sig",
        token_of(b"\xff\xfe"),
        token_of(b"[" * 100_000),
        token_of(["agent"]),
        token_of({}),
        token_of({"roles": []}),
        token_of({"roles": "agent"}),
        token_of({"roles": ["agent", 1]}),
    ],
    ids=range(11),
)
def test_roles_that_cannot_be_read_are_not_known(token: str) -> None:
    assert roles_in(token) is None


@pytest.mark.parametrize("name", ["a", "ab", "abc"])
def test_roles_are_read_whatever_the_length_of_the_payload(name: str) -> None:
    assert roles_in(token_of({"sub": name, "roles": ["agent", "auditor"]})) == frozenset({"agent", "auditor"})


@pytest.mark.parametrize(
    "command",
    [
        ("approve", "5b0a", "--yes"),
        ("approve", "5b0a", "--group", "--yes"),
        ("edit", "5b0a", "--arguments", "{}", "--yes"),
        ("reject", "5b0a", "--feedback", "no"),
        ("answer", "5b0a", "yes"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("token", "code", "said"),
    [
        (token_of({"roles": ["agent"]}), "not_authorised", "an agent's token cannot decide"),
        (token_of({"roles": ["clerk"]}), "not_authorised", FOR_READING),
        (token_of({"roles": ["agent"]}), "own_request", FOR_READING),
        ("t", "not_authorised", FOR_READING),
    ],
    ids=["agent", "other role", "other code", "unreadable"],
)
def test_decision_with_an_agents_token_is_told_that_it_cannot_decide(
    terminal: Terminal,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
    token: str,
    code: str,
    said: str,
) -> None:
    asked: list[str] = []

    async def answer(request: Asked) -> Response:
        asked.append(request.path)
        if request.path == "/v1/holds":
            return JSONResponse({"code": code, "detail": FOR_READING}, 403)
        return JSONResponse({"code": "not_found", "detail": "no such hold"}, 404)

    terminal.script.on_http = answer
    assert ran(terminal, capsys, token, *command) == (1, f"{code}: {said}\n")
    assert asked[-1] == "/v1/holds", "nothing is requested after the refusal"


@pytest.mark.parametrize(
    ("roles", "is_warned"), [(["reviewer", "admin\u202e"], True), (["agent"], False), ([], False)]
)
def test_mcp_warns_of_a_token_that_is_no_agents(
    terminal: Terminal,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    roles: list[str],
    is_warned: bool,
) -> None:
    async def served(*_: object) -> None:
        return None

    monkeypatch.setattr("placet.cli.mcp_command._serve", served)
    code, said = ran(terminal, capsys, token_of({"roles": roles}), "mcp")
    assert code == 0
    assert ("has the roles admin\\u{202e}, reviewer and not the role agent" in said) is is_warned
    assert bool(said) is is_warned


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("inbox",), "Nothing waits in project typo."),
        (("inbox", "--grouped"), "Nothing waits in project typo."),
        (("executions",), "No executions in project typo."),
        (("audit",), "No actions were found in project typo."),
    ],
    ids=" ".join,
)
def test_empty_list_names_the_project_that_was_given(
    terminal: Terminal,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    said: str,
) -> None:
    async def answer(request: Asked) -> Response:
        return JSONResponse({"items": [], "next_cursor": None, "cursor": "k0"})

    terminal.script.on_http = answer
    monkeypatch.delenv("PLACET_PROJECT", raising=False)
    assert ran(terminal, capsys, "t", "--project", "typo", *command) == (0, f"{said}\n")
    assert ran(terminal, capsys, "t", *command) == (0, said.replace(" in project typo", "") + "\n")
    monkeypatch.setenv("PLACET_PROJECT", "typo")
    assert ran(terminal, capsys, "t", *command) == (0, f"{said}\n")


def test_gateway_that_is_not_reachable_is_told_with_what_to_do() -> None:
    lost = explained(Unreachable("http://127.0.0.1:9 is not reachable"))
    assert lost.splitlines()[1] == "is `placet up` running? PLACET_URL (or --url) names its address"
    # A change that was sent reached a gateway.
    assert "placet up" not in explained(NoAnswer("no answer", f"/holds/{HOLD['hold_id']}/decision"))
