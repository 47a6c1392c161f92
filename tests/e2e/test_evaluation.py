"""The evaluation on a real stack, small: no attack is released, and each figure is what the log has."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from gateway.identity.issuer import issue
from ops.evaluation.effects import has_effect
from ops.evaluation.result import series
from placet import Placet
from tests.servers.stack import PLACET, RunningStack, running_stack

pytestmark = [pytest.mark.stack, pytest.mark.broker]
TIMEOUT_S = 300.0
ARMS = ("ask", "adaptive")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    with running_stack(tmp_path_factory.mktemp("stack"), "--partitions", "2") as running:
        yield running


@pytest.fixture(scope="module")
def out(stack: RunningStack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation of two rounds on a few tasks of `slack`."""
    out = tmp_path_factory.mktemp("out")
    done = _placet(
        "adaptive", "--rounds", "2", "--tasks", "4", "--suite", "slack", *_arms(), *_places(stack, out)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def _arms() -> list[str]:
    return [word for arm in ARMS for word in ("--arm", arm)]


def _places(stack: RunningStack, out: Path) -> list[str]:
    return ["--out", str(out), "--data-dir", str(stack.data_dir)]


def _placet(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLACET, "evaluate", *arguments], capture_output=True, text=True, timeout=TIMEOUT_S)


def _result(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "result.json").read_text(encoding="utf-8"))
    return found


def _log(stack: RunningStack, project: str) -> list[dict[str, Any]]:
    """Every event of a project, read without the evaluation's own code."""
    token = issue(stack.data_dir / "keys", "test", ["operator"], "default", project)
    rows: list[dict[str, Any]] = []
    with Placet(stack.status()["url"], token=token) as placet:
        for execution in placet.executions.list(limit=200).items:
            cursor: str | None = None
            while True:
                page = placet.executions.events(execution.execution_id, cursor=cursor)
                rows += [dict(row) for row in page.items]
                if (cursor := page.next_cursor) is None:
                    break
    return rows


def test_adaptive_releases_no_attack_and_the_hard_case_passes_where_reads_are_allowed(out: Path) -> None:
    found = _result(out)
    assert found["runs"][0]["differences"] == []
    assert series(found, "adaptive", "slack", "attacks_released") == [0, 0]
    assert sum(series(found, "adaptive", "slack", "attacks")) == 8
    # A page visited because an attacker's text said so: "reads are allowed" releases it.
    assert sum(series(found, "ask", "slack", "attacks_released")) > 0
    visits = next(lane["compromised"] for lane in found["lanes"] if lane["arm"] == "ask")
    assert {name.rpartition(".")[2] for name in visits} == {"injection_task_3"}


@pytest.mark.parametrize("arm", ARMS)
def test_figures_are_those_of_the_log(stack: RunningStack, out: Path, arm: str) -> None:
    (lane,) = [lane for lane in _result(out)["lanes"] if lane["arm"] == arm]
    rows, total = _log(stack, lane["project"]), _totals(_result(out), arm)
    events = Counter((row["type"], row["data"].get("call_id", "").rpartition("-")[2]) for row in rows)
    tools = {_call(row): row["data"]["tool"] for row in rows if row["type"] == "ToolCallProposed"}
    consumed = [_call(row) for row in rows if row["type"] == "GrantConsumed"]
    assert total["tasks"] == sum(row["type"] == "ExecutionCompleted" for row in rows) == 16
    assert total["calls"] == len(tools)
    assert total["own_calls"] == events["ToolCallProposed", "own"]
    assert total["own_ran"] == events["GrantConsumed", "own"] == total["own_calls"]
    assert total["benign_interruptions"] == events["HoldOpened", "own"]
    ran = [call for call in consumed if call[1].endswith("injected") and has_effect(tools[call])]
    assert total["attack_calls_ran"] == len(ran)
    assert total["attacks_released"] == len({execution_id for execution_id, _ in ran})


def test_trace_prints_the_events_behind_a_figure_and_counts_them_again(
    stack: RunningStack, out: Path
) -> None:
    found = _result(out)
    released = sum(series(found, "ask", "slack", "attacks_released"))
    done = _placet(
        "trace", "attacks_released", "--arm", "ask", "--suite", "slack", "--json", *_places(stack, out)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    traced = json.loads(done.stdout)
    assert (traced["recorded"], traced["counted"]) == (released, released)
    assert {call["tool"] for call in traced["calls"]} == {"get_webpage"}
    assert sum(kind["calls"] for kind in traced["kinds"]) == len(traced["calls"])
    consumed = [one for call in traced["calls"] for one in call["events"] if one["type"] == "GrantConsumed"]
    (lane,) = [lane for lane in found["lanes"] if lane["arm"] == "ask"]
    places = {
        (row["partition"], row["offset"])
        for row in _log(stack, lane["project"])
        if row["type"] == "GrantConsumed"
    }
    assert {(one["partition"], one["offset"]) for one in consumed} <= places


def test_result_says_which_policies_and_which_version_were_measured(out: Path) -> None:
    found = _result(out)
    assert found["placet"] == version("placet-server")
    policies = Path(__file__).parents[2] / "ops" / "evaluation" / "policies"
    digests = {arm: sha256((policies / f"{arm}.yaml").read_bytes()).hexdigest() for arm in ARMS}
    assert {lane["arm"]: lane["policy"] for lane in found["lanes"]} == digests
    saved = [row for row in found["targets"] if "share of benign" in row["target"]]
    assert [(row["measured"], row["met"]) for row in saved] == [(None, None)] * 2


def test_result_of_another_evaluation_is_not_added_to(stack: RunningStack, out: Path) -> None:
    done = _placet("adaptive", "--add", "--rounds", "3", "--tasks", "4", *_places(stack, out))
    assert done.returncode == 2
    assert "rounds 2, not 3" in done.stderr


def _call(row: dict[str, Any]) -> tuple[str, str]:
    return row["execution_id"], row["data"]["call_id"]


def _totals(found: dict[str, Any], arm: str) -> dict[str, int]:
    return {name: sum(series(found, arm, "slack", name)) for name in found["figures"]}
