"""`placet bench --against` as it is typed, on parts that are not real: what is refused, kept and answered."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ops.bench import command as whole
from ops.bench.against import command
from ops.bench.against.command import Asked, Compared
from ops.bench.against.pair import Pair
from ops.bench.against.scenarios import SCENARIOS
from ops.bench.load import BenchFailedError

APP = typer.Typer()
APP.command()(whole.bench)
GATE = SCENARIOS[0]
PAIR = Pair("gate-rate", GATE.named("gate-rate"), (300.0, 500.0), (100.0, 200.0))


def _half_measured(what: Asked, *, show: bool) -> Generator[Compared, None, None]:
    yield Compared(GATE, (PAIR,), 0.5)
    if len(what.scenarios) > 1:
        raise BenchFailedError("The load of holds failed: TimeoutError")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the figures are left; they come from nowhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "results", _half_measured)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path / ".placet" / "bench-against.json"


def test_what_was_measured_is_kept_while_the_rest_is_missing(kept: Path) -> None:
    done = CliRunner().invoke(APP, ["--against", "HEAD"])
    assert done.exit_code == 1
    assert "gated calls, 64 in flight" in done.stdout
    report = json.loads(kept.read_text(encoding="utf-8"))
    assert [one["name"] for one in report["scenarios"]] == ["gate"]
    assert report["missing"] == ["holds", "latency", "idle", "rebuild"]
    assert not report["ok"]


@pytest.mark.parametrize(("limit", "code"), [("2.7", 0), ("2.8", 1)])
def test_exit_code_says_whether_what_is_required_was_met(kept: Path, limit: str, code: int) -> None:
    arguments = ["--against", "HEAD", "--scenario", "gate", "--require", f"gate-rate>={limit}x", "--json"]
    done = CliRunner().invoke(APP, arguments)
    assert done.exit_code == code
    report = json.loads(done.stdout)
    assert report == json.loads(kept.read_text(encoding="utf-8"))
    assert report["required"] == [{"required": f"gate-rate>={limit}x", "ok": code == 0}]
    assert report["ok"] is (code == 0)
    assert {"ours", "theirs", "machine", "rounds"} <= set(report)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--against", "no-such-branch"], "has no such commit"),
        (
            ["--against", "HEAD", "--scenario", "everything"],
            "choose one of gate, holds, latency, idle, rebuild",
        ),
        (
            ["--against", "HEAD", "--scenario", "idle", "--require", "gate-rate>=2"],
            "there is no figure gate-rate",
        ),
        (["gate", "--against", "HEAD"], "--scenario gate"),
        (["--scenario", "gate"], "name a commit with --against"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_started(
    kept: Path, arguments: list[str], said: str
) -> None:
    done = CliRunner().invoke(APP, arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not kept.exists()
