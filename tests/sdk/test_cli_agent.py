"""`placet agent` refuses at the start what could only fail at the first message."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sdk.scripted import Scripted
from tests.sdk.terminal import Terminal
from tests.sdk.threaded import serving_thread

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
