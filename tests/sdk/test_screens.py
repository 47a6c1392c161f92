"""How wide what the command prints is where it is no terminal, and that no line of it ends in blanks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

import placet.cli
from placet.cli.lines import print_rows, print_with_texts
from placet.cli.safe import text
from placet.cli.session import console
from tests.sdk.scripted import Asked
from tests.sdk.terminal import Terminal, on_a_screen, plain

HEADS = ("tool", "trust is at least", "class of calls")
ROWS = [("send_money", "0.8500", "amount=1e2&risk=money,writes"), ("read", "0.5000", "")]
LONG = "c" * 300


def _lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return plain(capsys.readouterr().out).splitlines()


def test_table_through_a_pipe_is_a_line_for_each_record_however_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_rows(HEADS, [*ROWS, ("t", "0", LONG)], "")
    lines = _lines(capsys)
    assert len(lines) == 4
    assert lines[-1].endswith(LONG)
    assert lines == [line.rstrip() for line in lines]


@pytest.mark.parametrize("has_screen", [True, False])
def test_table_is_no_wider_than_the_environment_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, has_screen: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    if has_screen:
        on_a_screen(monkeypatch, 40)
    print_rows(HEADS, ROWS, "")
    lines = _lines(capsys)
    assert max(map(len, lines)) <= 40
    assert lines == [line.rstrip() for line in lines]
    assert sum(not line.startswith(" ") for line in lines) == 3, "the head and two records begin in column 1"


@pytest.mark.parametrize("columns", ["", "0", "-5", "wide", "٣"])
def test_width_that_is_none_is_not_used(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert console().is_unbounded


@pytest.mark.parametrize("columns", [None, 200, 60])
def test_texts_beside_and_below_a_table_end_in_no_blanks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int | None
) -> None:
    if columns is not None:
        on_a_screen(monkeypatch, columns)
    print_with_texts(HEADS, ROWS, "said", [text("one\nand two " * 9, lines=True), text("")], "")
    console().print(text("some words that a narrow window breaks into several lines, " * 3))
    lines = _lines(capsys)
    assert lines == [line.rstrip() for line in lines]
    assert "and two" in "\n".join(lines)


@pytest.mark.parametrize(
    "command", ["inbox", "inbox --grouped", "audit", "executions", "tools", "components", "principals"]
)
def test_list_through_a_pipe_has_no_trailing_blanks(terminal: Terminal, command: str) -> None:
    assert terminal(*command.split()) == 0
    lines = terminal.out.splitlines()
    assert len(lines) > 1
    assert lines == [line.rstrip() for line in lines]


def test_facts_of_a_run_have_no_trailing_blanks(terminal: Terminal) -> None:
    run: dict[str, Any] = {"execution_id": "march", "state": "running", "agent": "billing-bot", "version": 2}

    async def on_http(_: Asked) -> Response:
        return JSONResponse(run)

    terminal.script.on_http = on_http
    assert terminal("state", "march") == 0
    lines = terminal.out.splitlines()
    assert lines == [line.rstrip() for line in lines]


def test_console_is_made_in_one_place() -> None:
    root = Path(placet.cli.__file__).parents[4]
    made = [
        path.relative_to(root).as_posix()
        for room in ("sdk/src", "ops", "host")
        for path in (root / room).rglob("*.py")
        if re.search(r"(?<!\w)Console\(", path.read_text("utf-8").replace("class Screen(Console)", ""))
    ]
    assert made == []
