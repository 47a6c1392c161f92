"""`placet state`: an execution as it is or was, as text and as JSON."""

from __future__ import annotations

import json

import pytest
from starlette.responses import JSONResponse, Response

from tests.sdk.scripted import Asked
from tests.sdk.terminal import EXECUTION, Terminal


def test_state_at_a_moment_asks_for_it(terminal: Terminal) -> None:
    assert terminal("state", "invoice", "--at", "12", "--json") == 0
    assert json.loads(terminal.out)["at"] == "12"


def test_state_is_told_as_text_and_as_json_as_it_came(terminal: Terminal) -> None:
    everything = terminal.script.on_http
    execution = {
        **EXECUTION,
        "state": "completed",
        "started_by": "billing",
        "started_at": "2026-11-20T10:00:00Z",
        "request": "Pay the invoice\nof \x1b[31mMarch",
        "context": {"ticket": 7},
        "result": ["paid"],
        "user": "",
        "error": None,
    }

    async def answer(asked: Asked) -> Response:
        if asked.path == "/v1/executions/invoice-march":
            return JSONResponse(execution)
        return await everything(asked)

    terminal.script.on_http = answer
    assert terminal("state", "invoice-march") == 0
    lines = [" ".join(line.split()) for line in terminal.out.splitlines()]
    for said in (
        "execution invoice-march",
        "state completed",
        "version 7",
        "request Pay the invoice",
        "result",
    ):
        assert said in lines
    assert any(line.startswith("started 2026-11-") and line.endswith(" by billing") for line in lines)
    assert '"ticket": 7' in lines
    assert not any(line.startswith(("user", "error", "ended", '{"execution_id')) for line in lines)
    assert "\x1b" not in terminal.out

    assert terminal("state", "invoice-march", "--json") == 0
    assert json.loads(terminal.out) == execution


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("7", ""),
        ("8", "It has no version 8 yet: this is 7."),
        ("2026-01-01T00:00:00Z", ""),
        ("9999-01-01T00:00:00Z", "in the future"),
    ],
)
def test_state_at_what_has_not_come_says_that_it_is_the_newest(
    terminal: Terminal, at: str, said: str
) -> None:
    assert terminal("state", "invoice", "--at", at) == 0
    assert said in terminal.err
    assert bool(terminal.err) == bool(said)
