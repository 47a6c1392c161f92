"""`placet bench` as it is typed: small counts on a real stack, and its JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ops.bench import command
from ops.bench.load import BenchFailedError, run_load
from ops.bench.result import Figure, Result
from tests.servers.stack import COMMAND_TIMEOUT_S, PLACET

FIGURE = {"figure", "value", "unit", "floor", "ratio", "target", "ok"}


def _bench(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PLACET, "bench", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )


def test_what_was_measured_is_kept_while_the_rest_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    floor = Result("floor", (Figure("two raw hops, p50", 2.1, "ms"),))

    def stopped_after_the_first(*_: object, **__: object) -> Iterator[tuple[Result, float]]:
        yield floor, 0.5
        raise BenchFailedError("The load of gate failed: TimeoutError")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_results", stopped_after_the_first)
    app = typer.Typer()
    app.command()(command.bench)
    done = CliRunner().invoke(app)
    assert done.exit_code == 1
    assert "two raw hops, p50" in done.stdout
    report = json.loads((tmp_path / ".placet" / "bench.json").read_text(encoding="utf-8"))
    assert [result["name"] for result in report["results"]] == ["floor"]
    assert report["missing"] == ["gate", *command.NAMES[2:]]
    assert not report["ok"]


@pytest.mark.stack
@pytest.mark.broker
@pytest.mark.parametrize("name", ["gate", "questions", "chats", "tracing", "trust", "backtest"])
def test_quick_bench_prints_and_leaves_its_figures(tmp_path: Path, name: str) -> None:
    done = _bench(tmp_path, name, "--quick", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report == json.loads((tmp_path / ".placet" / "bench.json").read_text(encoding="utf-8"))
    assert report["quick"]
    assert report["missing"] == []
    assert {"cores", "load_average", "python", "packages"} <= set(report["machine"])
    (result,) = report["results"]
    assert result["name"] == name
    assert result["ok"] == all(figure["ok"] is not False for figure in result["figures"])
    assert all(set(figure) == FIGURE and figure["value"] > 0 for figure in result["figures"])
    for figure in result["figures"]:
        if figure["floor"] is not None:
            assert figure["ratio"] == pytest.approx(figure["value"] / figure["floor"], rel=0.01)


def test_bench_of_an_unknown_name_is_a_usage_error(tmp_path: Path) -> None:
    done = _bench(tmp_path, "everything")
    assert done.returncode == 2
    assert "choose one of floor, gate" in done.stderr


def test_load_that_fails_says_why() -> None:
    with pytest.raises(BenchFailedError, match=r"ops\.bench\.floor:load failed: KeyError: 'site'"):
        run_load("ops.bench.floor:load", {})
