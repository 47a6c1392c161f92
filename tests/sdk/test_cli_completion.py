"""What shells are told when a person presses Tab: candidates, each on a line of its own, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from starlette.responses import JSONResponse, Response

from placet.cli import choices, run
from placet.cli.app import app
from placet.cli.plugins import OF_THE_SERVER, OWN
from tests.sdk.scripted import Asked
from tests.sdk.terminal import HOLD, OTHER, Terminal

# A candidate with its help, as typer's script for each shell reads it.
FISH = re.compile(r"([\w-]+)(?:\t.+)?")
ZSH = re.compile(r'"([\w-]+)"(?::".+")?')
NARROW = "30"


def groups() -> list[str]:
    """The top, and each group below it."""
    top = typer.main.get_command(app)
    context = typer.Context(top)
    found = [top.get_command(context, name) for name in OWN]  # type: ignore[attr-defined]
    return ["", *(f"{command.name} " for command in found if hasattr(command, "list_commands"))]


GROUPS = groups()
LEAVES = [f"{name} --" for name in (*OWN, *OF_THE_SERVER) if f"{name} " not in GROUPS]


def environment(shell: str, typed: str) -> dict[str, str]:
    line = f"placet {typed}"
    return {
        "_PLACET_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "COLUMNS": NARROW,
        "TERMINAL_WIDTH": NARROW,
    }


def candidates(shell: str, told: str) -> list[str]:
    """The candidates of an answer; fails on a line that is none."""
    if shell == "bash":
        return told.splitlines()
    if shell == "zsh":
        whole = re.fullmatch(r"_arguments '\*: :\(\((.*)\)\)'\n", told, re.DOTALL)
        assert whole, told
        told = whole[1]
    form = FISH if shell == "fish" else ZSH
    found = [(line, form.fullmatch(line)) for line in told.splitlines()]
    assert [line for line, candidate in found if candidate is None] == []
    return [candidate[1] for _, candidate in found if candidate]


@pytest.mark.parametrize("typed", [*GROUPS, *LEAVES])
def test_every_shell_is_told_the_same_candidates_and_no_piece_of_a_help(
    typed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: dict[str, list[str]] = {}
    for shell in ("bash", "zsh", "fish"):
        for name, value in environment(shell, typed).items():
            monkeypatch.setenv(name, value)
        run([])
        told[shell] = candidates(shell, capsys.readouterr().out)
    assert told["bash"]
    assert told["bash"] == told["zsh"] == told["fish"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_command_in_a_narrow_terminal_tells_no_piece_of_a_help(shell: str) -> None:
    placet = Path(sys.executable).with_name("placet")
    done = subprocess.run(
        [str(placet)],
        env={**os.environ, **environment(shell, "")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert {*OWN, "up", "doctor"} <= set(candidates(shell, done.stdout)), done.stderr


def test_agents_of_a_chat_are_completed_from_the_newest_executions(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    access = {"PLACET_URL": terminal.script.url, "PLACET_TOKEN": "t"}
    for name, value in {**environment("bash", "chat --agent bil"), **access}.items():
        monkeypatch.setenv(name, value)
    run([])
    assert capsys.readouterr().out == "billing-bot\n"


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("approve 5b0a1f6e-2", [HOLD["hold_id"]]),
        ("show ", [HOLD["hold_id"], OTHER["hold_id"]]),
        ("state inv", ["invoice-march"]),
        ("events --execution ", ["invoice-march"]),
        ("revoke invoice-march c0", ["c0ffee-1"]),
        ("rules suspend ru", ["rule-1"]),
        ("audit impact --rule ru", ["rule-1"]),
        ("events --type DecisionRec", ["DecisionRecorded"]),
        ("trust explain billing-bot send_", ["send_money"]),
        ("trust assess billing-bot send_", ["send_money"]),
        ("probe plant billing-bot send_", ["send_money"]),
        ("executions --agent bil", ["billing-bot"]),
        ("fork inv", ["invoice-march"]),
        ("fork invoice-march --at c0", ["c0ffee-1"]),
        ("fork invoice-march --with e", ["edit"]),
        ("claim zzz", []),
    ],
)
def test_ids_and_words_are_completed(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, typed: str, completed: list[str]
) -> None:
    holds = terminal.script.on_http

    async def answer(request: Asked) -> Response:
        known = {
            "/v1/standing-rules": {"items": [{"rule_id": "rule-1", "status": "active"}]},
            "/v1/executions/invoice-march/tool-calls": {"items": [{**HOLD, "call_id": "c0ffee-1"}]},
        }.get(request.path)
        return await holds(request) if known is None else JSONResponse({**known, "next_cursor": None})

    terminal.script.on_http = answer
    monkeypatch.setenv("PLACET_URL", terminal.script.url)
    monkeypatch.setenv("PLACET_TOKEN", "t")
    monkeypatch.setattr(choices, "COMPLETE_WITHIN_S", 30.0)
    monkeypatch.setenv("_PLACET_COMPLETE", "complete_bash")
    words = f"placet {typed}".split(" ")
    monkeypatch.setenv("COMP_WORDS", f"placet {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    terminal.bare()
    assert terminal.out.split() == completed
