"""Variables at the terminal: asked for without being shown, or read from the input, never from the command line."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from placet.cli import decide
from placet.models import Hold

HOLD = Hold("h", kind="env_var", raw={"fields": ["API_KEY", "API_URL"]})


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked, by a person at a terminal who types the name's lower case."""
    asked: list[Any] = []

    def prompt(name: str, **options: Any) -> str:
        asked.append((name, options["hide_input"]))
        return name.lower()

    monkeypatch.setattr(decide, "is_interactive", lambda: True)
    monkeypatch.setattr(typer, "prompt", prompt)
    return asked


def test_variables_are_asked_for_one_by_one_and_not_shown(terminal: list[Any]) -> None:
    assert decide._variables(HOLD, None) == {"API_KEY": "api_key", "API_URL": "api_url"}
    assert terminal == [("API_KEY", True), ("API_URL", True)]


def test_variables_on_the_command_line_are_refused_and_not_repeated(terminal: list[Any]) -> None:
    with pytest.raises(typer.BadParameter, match="seen by all") as refused:
        decide._variables(HOLD, "hunter2")

    assert "hunter2" not in str(refused.value)


def test_variables_where_nobody_can_be_asked_come_from_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, "is_interactive", lambda: False)
    monkeypatch.setattr("sys.stdin.read", lambda: '{"API_KEY":"k","API_URL":"u"}', raising=False)
    with pytest.raises(typer.BadParameter, match="nobody can be asked"):
        decide._variables(HOLD, None)

    assert decide._variables(HOLD, "-") == {"API_KEY": "k", "API_URL": "u"}


def test_other_questions_need_an_answer() -> None:
    with pytest.raises(typer.BadParameter, match="say what the answer is"):
        decide._said(Hold("h", kind="clarification"), None)
