"""Secrets at the terminal: asked for without being shown, or read from the input, never from the command line."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import typer
from starlette.responses import JSONResponse, Response

from placet.canonical import call_digest
from placet.cli import answering, inputs, prompting
from placet.models import Hold
from tests.sdk.scripted import Asked, Scripted
from tests.sdk.terminal import HOLD as WAITING
from tests.sdk.terminal import Terminal
from tests.sdk.threaded import serving_thread

HOLD = Hold("h", kind="env_var", raw={"fields": ["API_KEY", "API_URL"]})


@pytest.fixture
def prompted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked, by a person at a terminal who types the name's lower case."""
    asked: list[Any] = []

    def line(prompt: str, hidden: bool, watch: object) -> str:
        asked.append((prompt, hidden))
        return prompt.removesuffix(": ").lower()

    monkeypatch.setattr(inputs, "is_interactive", lambda: True)
    monkeypatch.setattr(prompting, "_line", line)
    return asked


def test_variables_are_asked_for_one_by_one_and_not_shown(prompted: list[Any]) -> None:
    assert inputs.variables_of(HOLD, None) == {"API_KEY": "api_key", "API_URL": "api_url"}
    assert prompted == [("API_KEY: ", True), ("API_URL: ", True)]


def test_variables_are_asked_for_below_what_is_said_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = [
        {"name": "KEY", "description": "of the\u202e account"},
        {"name": "REGION", "required": False, "secret": False, "pattern": "^eu-"},
    ]
    typed, seen = ["", "sk-1", ""], list[tuple[str, bool]]()

    def line(prompt: str, hidden: bool, watch: object) -> str:
        seen.append((prompt, hidden))
        return typed.pop(0)

    monkeypatch.setattr(inputs, "is_interactive", lambda: True)
    monkeypatch.setattr(prompting, "_line", line)
    assert inputs.variables_of(Hold("h", kind="env_var", raw={"fields": fields}), None) == {"KEY": "sk-1"}
    assert seen == [("KEY: ", True), ("KEY: ", True), ("REGION: ", False)]
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("Error")]
    assert said == ["KEY: of the\\u{202e} account", "REGION: optional; pattern: ^eu-"]


def test_variables_on_the_command_line_are_refused_and_not_repeated(prompted: list[Any]) -> None:
    with pytest.raises(typer.BadParameter, match="can see a secret") as refused:
        inputs.variables_of(HOLD, "hunter2")

    assert "hunter2" not in str(refused.value)


def test_variables_where_nobody_can_be_asked_come_from_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "is_interactive", lambda: False)
    monkeypatch.setattr("sys.stdin.read", lambda: '{"API_KEY":"k","API_URL":"u"}', raising=False)
    with pytest.raises(typer.BadParameter, match="no terminal to prompt on"):
        inputs.variables_of(HOLD, None)

    assert inputs.variables_of(HOLD, "-") == {"API_KEY": "k", "API_URL": "u"}


def test_other_questions_need_an_answer() -> None:
    with pytest.raises(typer.BadParameter, match="give an answer"):
        answering.answer_to(Hold("h", kind="clarification"), None)


SEALED = {"handle": f"sec_{'a' * 32}", "commitment": "b" * 64}
SCHEMA = {
    "properties": {
        "host": {"type": "string"},
        "token": {"x-placet-sensitive": True},
        "logins": {"items": {"properties": {"pin": {"x-placet-sensitive": True}}}},
    }
}
PUBLIC = {"host": "h", "token": SEALED}
DIGEST = call_digest("acme", "billing-bot", "deploy", "v1", PUBLIC)
EDITED_DIGEST = "e" * 64
SECRET = "n3w-s3cret-n3w"
TEXT = f"placet-view 1\ntool: deploy\ndigest: {DIGEST}\n"
SEALING = {
    **WAITING,
    "tool": "deploy",
    "arguments": PUBLIC,
    "digest": DIGEST,
    "input_schema": SCHEMA,
    "must_read": False,
}
VIEW = {
    "hold_id": SEALING["hold_id"],
    "text": TEXT,
    "view_digest": sha256(TEXT.encode()).hexdigest(),
}


class Sealing(Terminal):
    """The command at a gateway that seals, and says what of the edited call."""

    recorded: dict[str, Any]


@pytest.fixture
def sealing(capsys: pytest.CaptureFixture[str]) -> Iterator[Sealing]:
    recorded = {"status": "resolved", "decision_id": "d1", "edited_digest": EDITED_DIGEST}

    async def gateway(asked: Asked) -> Response:
        if asked.path.endswith("/decision"):
            return JSONResponse(recorded)
        return JSONResponse(VIEW if asked.path.endswith("/view") else SEALING)

    with serving_thread(Scripted(on_http=gateway)) as script:
        terminal = Sealing(script, capsys)
        terminal.recorded = recorded
        yield terminal


def edited(terminal: Terminal, arguments: str, *more: str) -> int:
    return terminal("edit", str(SEALING["hold_id"]), "--yes", "--arguments", arguments, *more)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"host": "h", "token": SECRET}, "/token"),
        ({"host": "h", "token": {"a": SECRET}}, "/token"),
        ({"host": "h", "token": SEALED, "logins": [{}, {"pin": SECRET}]}, "/logins/1/pin"),
        ({"host": "h", "token": SEALED, "logins": SECRET}, "/logins"),
        ({"host": "h", "token": SEALED, "logins": {"pin": SECRET}}, "/logins"),
    ],
)
def test_edit_with_a_secret_on_the_command_line_is_refused_and_it_is_not_repeated(
    sealing: Sealing, arguments: dict[str, Any], place: str
) -> None:
    assert edited(sealing, json.dumps(arguments)) == 2
    said = " ".join(sealing.err.replace("│", " ").split())
    assert f"{place}: others can see a secret on the command line" in said
    assert SECRET not in sealing.out + sealing.err
    assert sealing.sent() == []


def test_edit_by_placeholders_alone_refuses_a_new_value_likewise(
    sealing: Sealing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SEALING, "input_schema", None)
    assert edited(sealing, json.dumps({"host": "h", "token": SECRET})) == 2
    assert sealing.sent() == []


@pytest.mark.parametrize("how", ["input", "file"])
def test_edit_with_a_secret_that_is_read_shows_it_nowhere(
    sealing: Sealing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    given = {"host": "other", "token": SECRET, "logins": [{"pin": SECRET}]}
    (tmp_path / "new.json").write_text(json.dumps(given))
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(given)))
    assert edited(sealing, "-" if how == "input" else f"@{tmp_path / 'new.json'}") == 0
    assert SECRET not in sealing.out + sealing.err
    assert '+  "token": "[sensitive]"' in sealing.out
    assert '+  "host": "other",' in sealing.out
    assert sealing.sent()[0].json()["edited_arguments"] == given


def test_edit_that_leaves_what_stands_for_a_secret_may_stand_on_the_command_line(sealing: Sealing) -> None:
    assert edited(sealing, json.dumps({**PUBLIC, "host": "other"})) == 0
    assert sealing.sent()[0].json()["edited_arguments"] == {**PUBLIC, "host": "other"}


def test_edit_prints_the_digest_that_the_server_made_and_never_one_of_the_secret(
    sealing: Sealing, tmp_path: Path
) -> None:
    given = {"host": "h", "token": SECRET}
    guessable = call_digest("acme", "billing-bot", "deploy", "v1", given)
    (tmp_path / "new.json").write_text(json.dumps(given))
    file = f"@{tmp_path / 'new.json'}"
    assert edited(sealing, file) == 0
    assert sealing.out.splitlines()[-1] == f"digest {EDITED_DIGEST}, in place of {DIGEST}"
    assert guessable not in sealing.out + sealing.err
    assert edited(sealing, file, "--json") == 0
    assert json.loads(sealing.out)["edited_digest"] == EDITED_DIGEST
    del sealing.recorded["edited_digest"]
    assert edited(sealing, file) == 0
    assert sealing.out.splitlines()[-1] == f"in place of digest {DIGEST}"
    sealing.recorded["next_hold"] = {"hold_id": "n", "digest": "f" * 64, "quorum": 1}
    assert edited(sealing, file) == 0
    assert f"digest {'f' * 64}, in place of {DIGEST}" in sealing.out.splitlines()
