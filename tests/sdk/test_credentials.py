"""What an address or a token may be, and that no error shows one that is wrong."""

import asyncio
import traceback
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from placet import AsyncPlacet, Placet, PlacetError
from placet.cli import run
from placet.config import NotConfigured, SettingRefused, find_config
from placet.grants import GatewayConsumer, Grant, GrantRefused
from placet.transport.auto import Mode
from placet.transport.port import Patience
from tests.sdk.terminal import Terminal

SECRET = "eyJhbGciOiJFZERTQSJ9.s3cr3t"
NOWHERE = "http://127.0.0.1:1"
MODES: tuple[Mode, ...] = ("rest", "ws")
# Each holds the secret, or a password, where none can be used.
BAD_TOKENS = {
    "line break inside": f"{SECRET}\n{SECRET}",
    "letter beyond ASCII": f"tök{SECRET}",
    "no UTF-8": f"{SECRET}\udcff",
    "blank inside": f"Bearer {SECRET}",
    "nul": f"{SECRET}\0",
}
BAD_ADDRESSES = {
    "a token": SECRET,
    "no scheme": f"{SECRET}:8000",
    "user and password": f"http://{SECRET}:{SECRET}@127.0.0.1:1",
    "user alone": f"http://{SECRET}@127.0.0.1:1",
    "query": f"{NOWHERE}?access_token={SECRET}",
    "fragment": f"{NOWHERE}#{SECRET}",
    "port out of range": "http://127.0.0.1:99999",
    "port that is none": f"http://127.0.0.1:{SECRET}",
    "no port at all": "http://127.0.0.1:0",
    "no host": f"http:///{SECRET}",
    "line break": f"{NOWHERE}\n/{SECRET}",
    "label too long": f"http://{'a' * 64}.example",
    "broken brackets": f"http://[{SECRET}",
    "another scheme": f"ftp://127.0.0.1/{SECRET}",
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PLACET_URL", "PLACET_TOKEN", "PLACET_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def traceback_of(act: Callable[[], object]) -> str:
    """The whole trace of what an act raises, its causes included."""
    with pytest.raises(PlacetError) as caught:
        act()
    return "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("token", ["token\n", " token", "\ttoken\r\n"])
def test_token_with_white_space_around_it_is_used_without(
    monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    assert find_config(NOWHERE, token).token == "token"
    monkeypatch.setenv("PLACET_TOKEN", token)
    assert find_config(NOWHERE).token == "token"


def test_token_read_from_a_file_with_its_newline_is_sent_without(terminal: Terminal) -> None:
    for token in ("token\n", lambda: "token\n"):
        with Placet(terminal.script.url, token=token, transport="rest") as placet:
            placet.holds.list()
    assert [asked.headers["authorization"] for asked in terminal.script.asked] == ["Bearer token"] * 2


@pytest.mark.parametrize("token", BAD_TOKENS.values(), ids=BAD_TOKENS)
def test_token_that_no_header_can_hold_is_refused_at_once_and_never_shown(token: str) -> None:
    with pytest.raises(SettingRefused, match="token=") as caught:
        Placet(NOWHERE, token=token)
    assert SECRET not in str(caught.value)
    assert SECRET not in traceback_of(lambda: Placet(NOWHERE, token=token))
    for mode in MODES:
        with Placet(NOWHERE, token=lambda: token, transport=mode) as placet:
            assert SECRET not in traceback_of(lambda: placet.propose("run", "tool", {}))


@pytest.mark.parametrize("token", BAD_TOKENS.values(), ids=BAD_TOKENS)
def test_tool_server_with_a_token_that_no_header_can_hold_runs_nothing(token: str) -> None:
    async def consume() -> None:
        async with httpx.AsyncClient() as client:
            with pytest.raises(SettingRefused):
                GatewayConsumer(NOWHERE, client, token)
            consumer = GatewayConsumer(NOWHERE, client, lambda: token)
            grant = Grant.__new__(Grant)
            for name in ("grant_id", "execution_id", "call_id", "digest"):
                object.__setattr__(grant, name, "00000000-0000-4000-8000-000000000000")
            with pytest.raises(GrantRefused) as caught:
                await consumer(grant)
            assert caught.value.code == "unavailable"
            assert SECRET not in "".join(traceback.format_exception(caught.value))

    asyncio.run(consume())


@pytest.mark.parametrize("url", BAD_ADDRESSES.values(), ids=BAD_ADDRESSES)
def test_address_that_is_none_is_refused_at_once_and_never_shown(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = traceback_of(lambda: Placet(url, token="token"))
    monkeypatch.setenv("PLACET_URL", url)
    shown += traceback_of(lambda: AsyncPlacet(token=lambda: "token"))
    assert SECRET not in shown
    assert "PLACET_URL" in shown


@pytest.mark.parametrize("setting", ["PLACET_TOKEN", "PLACET_URL", "PLACET_PROJECT"])
@pytest.mark.parametrize("command", [["inbox"], ["events", "--follow"]], ids=["inbox", "events"])
def test_command_with_a_setting_that_cannot_be_used_says_which_in_one_line(
    setting: str, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLACET_URL", NOWHERE)
    monkeypatch.setenv("PLACET_TOKEN", "token")
    monkeypatch.setenv(setting, f"ö{SECRET}")
    assert run(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(setting)
    assert SECRET not in line


def test_path_of_an_address_is_not_shown_by_errors() -> None:
    patience = Patience(request_s=0.2, open_s=0.2)
    for mode in MODES:
        with Placet(f"{NOWHERE}/{SECRET}", token="token", transport=mode, patience=patience) as placet:
            shown = traceback_of(lambda: placet.propose("run", "tool", {}))
        assert SECRET not in shown
        assert "127.0.0.1:1" in shown


@pytest.mark.parametrize("mode", MODES)
def test_proxy_that_cannot_be_used_is_told_without_its_password(
    mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"gopher://user:{SECRET}@proxy.example")
    with Placet("http://gateway.example", token="token", transport=mode) as placet:
        shown = traceback_of(lambda: placet.propose("run", "tool", {}))
    assert "HTTP_PROXY" in shown
    assert SECRET not in shown


def test_local_token_that_is_no_text_is_told_without_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "placet.json").write_text(f'{{"url": "{NOWHERE}"}}')
    (tmp_path / "admin.token").write_bytes(SECRET.encode() + b"\xff")
    with pytest.raises(NotConfigured, match=r"admin\.token") as caught:
        find_config(data_dir=tmp_path)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("empty", ["", " ", "\n"])
@pytest.mark.parametrize("name", ["url", "token", "project"])
def test_setting_that_is_given_empty_is_refused_and_never_another_ones(
    name: str, empty: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".placet").mkdir()
    (tmp_path / ".placet" / "placet.json").write_text(f'{{"url": "{NOWHERE}"}}')
    (tmp_path / ".placet" / "admin.token").write_text("the-admins")
    with pytest.raises(SettingRefused, match=f"{name}=.* is empty"):
        Placet(**{name: empty})  # type: ignore[arg-type]
    assert run([f"--{name}", empty, "inbox"]) == 2
    assert f"--{name}) is empty" in capsys.readouterr().err
    monkeypatch.setenv(f"PLACET_{name.upper()}", empty)
    with pytest.raises(SettingRefused, match=f"PLACET_{name.upper()} is empty"):
        AsyncPlacet()
    assert run(["approve", "d1", "--yes"]) == 2
    assert f"PLACET_{name.upper()} is empty" in capsys.readouterr().err


def test_function_that_gives_an_empty_token_sends_nothing(terminal: Terminal) -> None:
    for mode in MODES:
        with (
            Placet(terminal.script.url, token=lambda: " ", transport=mode) as placet,
            pytest.raises(SettingRefused, match="token="),
        ):
            placet.propose("run", "tool", {})
    assert (terminal.script.asked, terminal.script.peers) == ([], [])


def test_project_that_is_given_wins_over_the_environments(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACET_PROJECT", "ours")
    assert terminal("inbox") == 0
    assert run(["--url", terminal.script.url, "--token", "t", "--project", "payments", "inbox"]) == 0
    with Placet(terminal.script.url, token="t", project="payments", transport="rest") as placet:
        placet.holds.list()
    projects = [asked.headers["placet-project"] for asked in terminal.script.asked]
    assert (projects[0], set(projects[2:])) == ("ours", {"payments"})
