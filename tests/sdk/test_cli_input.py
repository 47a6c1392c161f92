"""What a command reads from its standard input in place of a file."""

from __future__ import annotations

import io

import pytest
from starlette.responses import JSONResponse, Response

from tests.sdk.scripted import Asked
from tests.sdk.terminal import Terminal


def test_tool_put_reads_the_definition_from_standard_input(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Asked] = []

    async def answer(asked: Asked) -> Response:
        sent.append(asked)
        return JSONResponse({"name": "pay", "version": 1, "cursor": "k"})

    terminal.script.on_http = answer
    monkeypatch.setattr("sys.stdin", io.StringIO('{"name": "pay", "inputSchema": {"type": "object"}}'))
    assert terminal("tool", "put", "-") == 0
    assert terminal.out == "pay version 1 is published\n"
    assert sent[0].path == "/v1/tools/pay"
    assert sent[0].json()["inputSchema"] == {"type": "object"}


@pytest.mark.parametrize(
    ("text", "said"),
    [("{}", "the definition has no name"), ("[]", "JSON object"), ('{"a": 1, "a": 2}', "the same key twice")],
)
def test_tool_put_of_an_input_that_defines_no_tool_sends_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert terminal("tool", "put", "-") == 2
    assert said in terminal.err
    assert terminal.script.asked == []
