import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ops.process import started_ticks
from placet.config import Config, NotConfigured, find_config


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PLACET_URL", raising=False)
    monkeypatch.delenv("PLACET_TOKEN", raising=False)
    monkeypatch.delenv("PLACET_DATA_DIR", raising=False)
    monkeypatch.chdir(tmp_path)


def local_stack(directory: Path, url: str = "http://127.0.0.1:8000") -> None:
    (directory / ".placet").mkdir()
    (directory / ".placet" / "placet.json").write_text(json.dumps({"url": url}))
    (directory / ".placet" / "admin.token").write_text("local\n")


def test_find_config_by_arguments_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    local_stack(tmp_path)
    monkeypatch.setenv("PLACET_URL", "http://env")
    monkeypatch.setenv("PLACET_TOKEN", "env")
    assert find_config("http://given/", "given") == Config("http://given", "given")


def test_find_config_by_environment_beats_the_local_stack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    local_stack(tmp_path)
    monkeypatch.setenv("PLACET_URL", "http://env")
    monkeypatch.setenv("PLACET_TOKEN", "env")
    assert find_config() == Config("http://env", "env")


def test_find_config_beside_a_local_stack_uses_it(tmp_path: Path) -> None:
    local_stack(tmp_path)
    assert find_config() == Config("http://127.0.0.1:8000", "local")


def test_find_config_follows_the_directory_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    local_stack(other)
    monkeypatch.setenv("PLACET_DATA_DIR", str(other / ".placet"))
    assert find_config() == Config("http://127.0.0.1:8000", "local")

    monkeypatch.setenv("PLACET_DATA_DIR", str(other / "none"))
    with pytest.raises(NotConfigured, match=r"none has no placet\.json; set PLACET_URL"):
        find_config()


def test_find_config_never_sends_the_local_token_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    local_stack(tmp_path)
    monkeypatch.setenv("PLACET_URL", "http://elsewhere")
    with pytest.raises(NotConfigured, match="PLACET_TOKEN"):
        find_config()


@pytest.mark.parametrize("end", ["/v1", "/v1/", "/prefix/v1"])
def test_find_config_with_the_path_of_the_api_says_to_leave_it_out(end: str) -> None:
    with pytest.raises(NotConfigured, match="ends with /v1: give the gateway's address without it"):
        find_config("http://127.0.0.1:8000" + end, "t")


def test_find_config_with_nothing_says_what_to_set() -> None:
    with pytest.raises(NotConfigured, match="PLACET_URL"):
        find_config()


def test_find_config_beside_a_broken_file_says_which(tmp_path: Path) -> None:
    local_stack(tmp_path)
    (tmp_path / ".placet" / "placet.json").write_text("{")
    with pytest.raises(NotConfigured, match=r"placet\.json"):
        find_config()


def test_config_shown_keeps_the_token_to_itself() -> None:
    assert "secret" not in repr(Config("http://x", "secret"))


def runs(directory: Path, state: str, pid: int | None, **more: object) -> None:
    (directory / ".placet" / "run").mkdir()
    (directory / ".placet" / "run" / "stack.json").write_text(
        json.dumps({"state": state, "pid": pid, **more})
    )


@pytest.mark.parametrize("ahead", [0, 1])
def test_find_config_beside_a_stack_whose_process_id_another_has_is_as_beside_a_stopped_one(
    tmp_path: Path, ahead: int
) -> None:
    local_stack(tmp_path)
    runs(tmp_path, "ready", os.getpid(), started=started_ticks(os.getpid()) + ahead)
    if not ahead:
        assert find_config() == Config("http://127.0.0.1:8000", "local")
        return
    with pytest.raises(NotConfigured, match="Nothing runs"):
        find_config()


def test_find_config_in_a_copy_made_while_a_stack_ran_is_as_beside_a_stopped_one(tmp_path: Path) -> None:
    local_stack(tmp_path)
    place = (tmp_path / ".placet").stat()
    runs(tmp_path, "ready", os.getpid(), place=[place.st_dev, place.st_ino])
    assert find_config() == Config("http://127.0.0.1:8000", "local")
    (tmp_path / ".placet").rename(tmp_path / "original")
    shutil.copytree(tmp_path / "original", tmp_path / ".placet")
    with pytest.raises(NotConfigured, match="Nothing runs"):
        find_config()


def test_find_config_beside_a_stack_that_was_stopped_sends_nobody_its_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    local_stack(tmp_path)
    runs(tmp_path, "stopped", None)
    with pytest.raises(NotConfigured, match=r"Nothing runs in \.placet"):
        find_config()
    monkeypatch.setenv("PLACET_URL", "http://127.0.0.1:8000")
    with pytest.raises(NotConfigured, match="PLACET_TOKEN"):
        find_config()
    assert find_config(token="given") == Config("http://127.0.0.1:8000", "given")


def test_find_config_beside_a_stack_that_was_killed_is_as_beside_a_stopped_one(tmp_path: Path) -> None:
    local_stack(tmp_path)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    runs(tmp_path, "ready", ended.pid)
    with pytest.raises(NotConfigured, match="Nothing runs"):
        find_config()


def test_find_config_beside_a_stack_that_runs_uses_it(tmp_path: Path) -> None:
    local_stack(tmp_path)
    runs(tmp_path, "ready", os.getpid())
    assert find_config() == Config("http://127.0.0.1:8000", "local")
