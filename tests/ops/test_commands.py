"""The server's commands: their exit codes, and one sentence for each thing that can be wrong."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from ops.checker.command import audit_log
from ops.commands.common import errors_as_exit_codes
from ops.commands.doctor import doctor
from ops.commands.stack import down, status, up
from ops.component import READY, STOPPED, Component
from ops.doctor import OK, Finding
from ops.errors import UsageError
from ops.export.command import export_command
from ops.fork.command import fork_command
from ops.ports import free_port
from ops.replay import _print as print_outcome
from ops.status import Stack
from placet.cli import run as placet_run
from projections.compare import Comparison, Difference, TableReport
from projections.rebuild import Outcome, Plan
from tests.sdk.terminal import on_a_screen, plain

COMMANDS: dict[str, Callable[..., None]] = {
    "up": up,
    "down": down,
    "status": status,
    "doctor": doctor,
    "audit-log": audit_log,
    "export": export_command,
    "fork": fork_command,
}


def run(name: str, *arguments: str) -> Result:
    app = typer.Typer()
    app.command(name)(COMMANDS[name])
    return CliRunner().invoke(app, list(arguments))


def test_every_command_is_an_entry_point_that_loads() -> None:
    loaded = {point.name: point.load() for point in entry_points(group="placet.commands")}
    assert {name: loaded[name] for name in COMMANDS} == COMMANDS


@pytest.mark.parametrize(
    "command",
    [
        ("up", "--data-dir", ""),
        ("up", "--data-dir="),
        ("up", "--database-url", ""),
        ("down", "--data-dir", ""),
        ("status", "--data-dir", ""),
        ("replay", "--data-dir", ""),
        ("replay", "--into", ""),
        ("replay", "--database-url", ""),
        ("keys", "list", "--data-dir", ""),
        ("token", "issue", "--data-dir", "", "--subject", "ada"),
        ("policy", "check", ""),
        ("policy", "check", "p.yaml", "--against", ""),
        ("audit-log", "--history", ""),
        ("export", "--out", ""),
        ("fork", "x", "--at", "", "--with", "reject"),
    ],
    ids=" ".join,
)
def test_empty_option_or_argument_is_wrong_usage(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert placet_run(command) == 2
    assert "it is empty" in capsys.readouterr().err


def test_status_without_a_stack_is_not_reachable(tmp_path: Path) -> None:
    done = run("status", "--data-dir", str(tmp_path), "--json")
    assert done.exit_code == 3
    answer = json.loads(done.stdout)
    assert answer["components"] == []
    assert answer["url"] is None


def test_down_without_a_stack_says_so(tmp_path: Path) -> None:
    done = run("down", "--data-dir", str(tmp_path))
    assert done.exit_code == 0
    assert "Nothing runs" in done.stdout


def test_up_on_a_taken_port_is_a_usage_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = run("up", "--data-dir", str(tmp_path), "--port", str(other.getsockname()[1]), "--detach")
    assert done.exit_code == 2
    assert "is taken: choose another with --port" in done.stderr
    assert done.stderr.count("\n") == 1


def test_up_without_its_kafka_is_not_reachable(tmp_path: Path) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    done = run("up", "--data-dir", str(tmp_path), "--port", "0", "--bootstrap-servers", nowhere, "--detach")
    assert done.exit_code == 3
    assert f"Kafka does not answer at {nowhere}" in done.stderr
    assert done.stderr.count("\n") == 1


def test_up_with_settings_that_are_not_known_is_a_usage_error(tmp_path: Path) -> None:
    settings = tmp_path / "kafka.json"
    settings.write_text(json.dumps({"sasl_plain_pasword": "x"}))
    arguments = (
        "--port",
        "0",
        "--bootstrap-servers",
        "127.0.0.1:1",
        "--kafka-settings",
        str(settings),
        "--detach",
    )
    done = run("up", "--data-dir", str(tmp_path / "data"), *arguments)
    assert done.exit_code == 2
    assert "unknown names (sasl_plain_pasword)" in done.stderr


def test_up_with_an_unknown_word_about_signatures_makes_nothing(tmp_path: Path) -> None:
    done = run("up", "--data-dir", str(tmp_path / "data"), "--port", "0", "--log-signatures", "x", "--detach")
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "--log-signatures must be required or off, not x." in done.stderr


def test_up_with_damaged_keys_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "issuer.pem").write_text("not a key")
    done = run("up", "--data-dir", str(tmp_path), "--port", "0", "--detach")
    assert done.exit_code == 2
    assert "issuer.pem" in done.stderr


def test_doctor_without_a_stack_checks_the_machine(tmp_path: Path) -> None:
    done = run("doctor", "--data-dir", str(tmp_path), "--port", str(free_port()), "--json")
    answer = json.loads(done.stdout)
    checks = {found["check"]: found["state"] for found in answer["checks"]}
    assert list(checks) == ["python", "java", "jars", "disk", "port", "kafka"]
    assert {checks["python"], checks["java"], checks["port"]} == {"ok"}
    assert done.exit_code == (0 if answer["healthy"] else 1)


def test_doctor_taken_port_is_not_healthy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = run("doctor", "--data-dir", str(tmp_path), "--port", str(other.getsockname()[1]))
    assert done.exit_code == 1
    assert "failed" in done.stdout


def test_status_says_where_it_looked_and_asks_no_gateway(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert placet_run(["status", "--data-dir", str(tmp_path)]) == 3
    assert capfd.readouterr().out.splitlines() == [
        f"Nothing runs in {tmp_path}; --data-dir names another directory.",
        f"stopped: `placet up --data-dir {tmp_path}` starts it",
    ]
    assert placet_run(["--url", "http://127.0.0.1:1", "status", "--data-dir", str(tmp_path)]) == 2
    said = capfd.readouterr().err
    assert str(tmp_path) in said
    assert "/readyz" in said


def test_status_after_a_stop_has_no_table_and_says_how_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    parts = (Component("gateway", None, STOPPED), Component("decider", None, STOPPED))
    stack = Stack(STOPPED, components=parts, message="There is little room.")
    monkeypatch.setattr("ops.commands.stack.read_stack", lambda directory: stack)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLACET_DATA_DIR", raising=False)
    assert placet_run(["status"]) == 3
    assert capfd.readouterr().out.splitlines()[1:] == [
        "stopped: `placet up` starts it",
        "There is little room.",
    ]


def test_status_of_a_stack_that_no_file_names_suggests_no_second_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    message = "A stack runs here: end its supervisor with `kill 7`."
    monkeypatch.setattr("ops.commands.stack.read_stack", lambda directory: Stack(STOPPED, message=message))
    monkeypatch.setattr("ops.commands.stack.unnamed_supervisor", lambda directory: message)
    assert placet_run(["status", "--data-dir", str(tmp_path)]) == 3
    assert capfd.readouterr().out.splitlines() == [
        f"stopped: no status of what runs in {tmp_path}",
        message,
    ]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UsageError("unknown field 'adress'; did you mean 'address'?."), "did you mean 'address'?"),
        (UsageError("It is wrong."), "It is wrong."),
    ],
)
def test_error_that_ends_with_a_question_has_no_full_stop(
    error: UsageError, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit), errors_as_exit_codes():
        raise error
    assert capsys.readouterr().err.endswith(f"{said}\n")


def test_status_on_a_narrow_terminal_cuts_no_name_and_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, address = "projector-of-a-long-name", "http://a-host.of.a.cluster.example:43521"
    stack = Stack(READY, url=address, components=(Component(name, os.getpid(), READY, address),))
    monkeypatch.setattr("ops.commands.stack.read_stack", lambda directory: stack)
    on_a_screen(monkeypatch, 40)
    shown = run("status", "--data-dir", str(tmp_path)).stdout
    lines = [line.split("│") for line in plain(shown).splitlines() if line.startswith("│")]
    columns = ["".join(cell.strip() for cell in cells) for cells in zip(*lines, strict=True)]
    assert "…" not in shown
    assert name in columns
    assert address in columns


def test_doctor_on_a_narrow_terminal_cuts_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/{'p' * 60}"
    monkeypatch.setattr("ops.commands.doctor.examine", lambda *_: [Finding("disk", OK, path)])
    on_a_screen(monkeypatch, 40)
    shown = plain(run("doctor", "--data-dir", str(tmp_path)).stdout)
    assert "…" not in shown
    assert shown.count("p") == path.count("p")


def test_replay_on_a_narrow_terminal_cuts_no_digest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_a_screen(monkeypatch, 40)
    difference = Difference(("acme", "main", "run-" + "7" * 40), "differs", ("agent",))
    tables = [TableReport("executions", 5, "f" * 64, 1, [difference])]
    print_outcome(Outcome(5, 1.0, Comparison({}, tables)), Plan("sqlite:///a", "sqlite:///a"))
    shown = plain(capsys.readouterr().out)
    assert "…" not in shown
    assert shown.count("7") == 40
