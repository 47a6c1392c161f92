import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from placet.cli import plugins, run

ENTRY_POINTS = """\
[placet.commands]
greet = ourcommands:greet
policy.lint = ourcommands:check
save = ourcommands:save
machine.part.turn = ourcommands:turn
broken = ourcommands_missing:gone
wrong = ourcommands:NUMBER
"""
MODULE = '''\
import typer
from pathlib import Path
NUMBER = 3
def greet(name: str, loud: bool = False) -> None:
    """Say hello."""
    print(f"hello {name}" + ("!" if loud else ""))
def check(file: str) -> None:
    """Check a policy."""
    print(f"checking {file}")
    raise typer.Exit(1)
def save(files: list[str] = typer.Argument(default=None), out: Path = Path(".")) -> None:
    print(f"saving to {out}")
def turn(by: int = 1) -> None:
    print(f"turned {by}")
'''


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    dist = tmp_path / "ourcommands-1.0.dist-info"
    dist.mkdir()
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: ourcommands\nVersion: 1.0\n")
    (dist / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "ourcommands.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins._contributed.cache_clear()
    yield
    plugins._contributed.cache_clear()
    sys.modules.pop("ourcommands", None)


def test_command_of_another_distribution_runs_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["greet", "ada", "--loud"]) == 0
    assert capsys.readouterr().out == "hello ada!\n"


@pytest.mark.parametrize(
    "command",
    [("greet", ""), ("save", "--out", ""), ("save", "--out="), ("policy", "lint", ""), ("save", "")],
)
def test_empty_option_or_argument_of_a_command_of_another_distribution_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert run(command) == 2
    written = capsys.readouterr()
    assert "it is empty" in written.err
    assert written.out == ""


def test_command_under_our_own_group_stands_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "lint", "x.yaml"]) == 1
    assert capsys.readouterr().out == "checking x.yaml\n"
    assert run(["policy", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "publish" in shown
    assert "lint" in shown


def test_command_under_groups_of_its_own_makes_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["machine", "part", "turn", "--by", "4"]) == 0
    assert capsys.readouterr().out == "turned 4\n"


@pytest.mark.parametrize("name", ["broken", "wrong"])
def test_command_that_can_not_be_loaded_says_so_when_invoked(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "--with", "anything"]) == 1
    written = capsys.readouterr()
    assert f"`placet {name}` can't be loaded" in written.err
    assert written.out == ""


def test_command_that_can_not_be_loaded_breaks_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["greet", "ada"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["--help"]) == 0
    assert "inbox" in capsys.readouterr().out


def test_command_without_being_invoked_is_not_imported() -> None:
    assert run(["policy", "versions", "--help"]) == 0
    assert "ourcommands" not in sys.modules


def test_command_of_a_server_that_is_not_installed_says_where_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: [])
    assert run(["replay"]) == 2
    assert "placet-server" in capsys.readouterr().err


def test_group_whose_only_command_comes_with_the_server_lists_without_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: [])
    assert run(["tools", "start", "config.json"]) == 2
    assert "`placet tools start` comes with the server (placet-server)" in capsys.readouterr().err
    assert run(["tools", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--json" in shown
    assert "Commands" not in shown
