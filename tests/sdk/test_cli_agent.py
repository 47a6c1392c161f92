"""`placet agent` refuses at the start what could only fail at the first message."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, Response

from tests.sdk.claimed import TURN
from tests.sdk.scripted import DEADLINE_S, Asked, Scripted
from tests.sdk.terminal import Terminal
from tests.sdk.threaded import serving_thread
from tests.servers.stack import wait_for

OPENAI = ("agent", "openai", "--agent", "a", "--model", "m")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says that is refused as wrongly used, in one line."""
    with serving_thread(Scripted()) as script:
        terminal = Terminal(script, capsys)
        assert terminal(*words) == 2
        return " ".join(terminal.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("./agents.py", "module's name: agents"),
        ("agents.py", "module's name: agents"),
        ("agents:foo", "module's name: agents"),
        ("billing/agents.py:app", "module's name: billing.agents"),
        ("/srv/agents.py", "module's name: agents, in the directory"),
        ("../agents.py", "module's name: agents, in the directory"),
    ],
)
def test_path_in_place_of_a_module_is_answered_with_its_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in said(capsys, "agent", "run", given)


@pytest.mark.parametrize("module", ["nope", "payer_tools.py"])
def test_tools_that_cannot_be_imported_name_their_option(
    capsys: pytest.CaptureFixture[str], module: str
) -> None:
    told = said(capsys, *OPENAI, "--base-url", "http://127.0.0.1:9/v1", "--tools", module)
    assert "Invalid value for --tools" in told


@pytest.mark.parametrize(
    "address", ["127.0.0.1:18130", "localhost:1/v1", "http://", "ftp://host/v1", "http://h:x/v1"]
)
def test_endpoint_without_a_whole_address_is_refused(
    capsys: pytest.CaptureFixture[str], address: str
) -> None:
    assert "give it as http://HOST:PORT/v1" in said(capsys, *OPENAI, "--base-url", address)


def test_endpoint_of_openai_needs_a_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert "set OPENAI_API_KEY, or give the address of another endpoint" in said(capsys, *OPENAI)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import os\n\nKEY = os.environ['A_MISSING_KEY']\n", r"KeyError: 'A_MISSING_KEY' \(.*line 3\)"),
        ("def f(:\n", r"SyntaxError: .*line 1\)"),
        ("import a_module_that_is_missing\n", r"No module named 'a_module_that_is_missing' \(.*line 1\)"),
    ],
    ids=["variable", "syntax", "module"],
)
def test_module_that_cannot_be_imported_is_told_with_the_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    name = f"agents_{abs(hash(text))}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert re.search(told, said(capsys, "agent", "run", name))


AGENTS = """
import logging
import placet
{logs}

@placet.agent("bot")
def bot(turn):
    raise RuntimeError("boom\\n2026-11-27 12:00:00,000 WARNING placet.worker all is well\\x1b[2J\\r\\u202e")
"""
OWN_HANDLERS = {
    "none": "",
    # As `opentelemetry-instrument` adds one before the program begins.
    "elsewhere": "logging.getLogger().addHandler(logging.NullHandler())",
    # As of a library that shows the log in its own way.
    "shown": """
class Shown(logging.Handler):
    def emit(self, record):
        print("MINE", self.format(record))

logging.basicConfig(handlers=[Shown()], level="INFO")
import sys; sys.stdout = sys.stderr
""",
    "own": "logging.basicConfig(format='MINE %(message)s')",
}


@pytest.mark.parametrize("handlers", OWN_HANDLERS)
def test_log_of_a_worker_shows_no_exception_that_looks_like_a_record(tmp_path: Path, handlers: str) -> None:
    ended = threading.Event()

    async def answer(asked: Asked) -> Response:
        if asked.path.endswith("/claim") and not ended.is_set():
            ended.set()
            turn = {**TURN, "attempt_id": asked.json()["attempt_id"], "lease_until": "2026-11-27T12:00:00Z"}
            return JSONResponse({"turn": turn, "lease_seconds": 30})
        if asked.path.endswith("/claim"):
            await asyncio.Event().wait()
        return JSONResponse({**TURN, "status": "failed"})

    (tmp_path / "agents.py").write_text(AGENTS.format(logs=OWN_HANDLERS[handlers]))
    script = Scripted(on_http=answer, refuse_sockets=404)
    with serving_thread(script):
        command = [sys.executable, "-c", "from placet.cli import main; main()", "--url", script.url]
        command += ["--token", "t", "agent", "run", "agents"]
        with (tmp_path / "log").open("w+") as log:
            worker = subprocess.Popen(command, cwd=tmp_path, stderr=log)
            # In the line of the source, and in that of the exception.
            text = wait_for(
                lambda: (tmp_path / "log").read_text(), lambda text: text.count("all is well") == 2
            )
            worker.terminate()
            worker.wait(DEADLINE_S)
    lines = text.split("\n")
    assert "the agent bot failed" in text
    if handlers in ("own", "shown"):
        assert "MINE" in text
        assert text.count("the agent bot failed") == 1
        return
    assert not any(line.startswith("2026-11-27 12:00:00,000") for line in lines)
    assert "\\u{1b}[2J\\u{d}\\u{202e}" in text
    assert not {"\x1b", "\r", "\u202e"} & set(text)
