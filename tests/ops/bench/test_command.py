"""`placet bench` as it is typed: small counts on a real stack, and its JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ops.bench.load import BenchFailedError, run_load
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


@pytest.mark.stack
@pytest.mark.broker
@pytest.mark.timeout(200)
def test_bench_gate_quick_prints_and_leaves_its_figures(tmp_path: Path) -> None:
    done = _bench(tmp_path, "gate", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report == json.loads((tmp_path / ".placet" / "bench.json").read_text(encoding="utf-8"))
    assert report["quick"]
    assert {"cores", "load_average", "python", "packages"} <= set(report["machine"])
    (result,) = report["results"]
    assert result["name"] == "gate"
    assert result["ok"] == all(figure["ok"] is not False for figure in result["figures"])
    assert all(set(figure) == FIGURE and figure["value"] > 0 for figure in result["figures"])
    streamed, *_ = result["figures"]
    assert streamed["ratio"] == pytest.approx(streamed["value"] / streamed["floor"], rel=0.01)


def test_bench_of_an_unknown_name_is_a_usage_error(tmp_path: Path) -> None:
    done = _bench(tmp_path, "everything")
    assert done.returncode == 2
    assert "choose one of floor, gate" in done.stderr


def test_load_that_fails_says_why() -> None:
    with pytest.raises(BenchFailedError, match=r"ops\.bench\.floor:load failed: KeyError: 'site'"):
        run_load("ops.bench.floor:load", {})
