"""The demo on a real stack: unattended, its figures against the log; and with a person at the terminal."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ops.component import STOPPED
from ops.config import DataDir
from ops.status import read_stack
from placet import Placet
from tests.servers.stack import PLACET, RunningStack, running_stack

pytestmark = [pytest.mark.stack, pytest.mark.broker]
DEMO_TIMEOUT_S = 300.0
# Later; an edit that is no JSON; no.
TYPED = "l\ne\nnot JSON\nr\nNobody asked for this mail.\n"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    with running_stack(tmp_path_factory.mktemp("stack"), "--partitions", "2") as running:
        yield running


def _demo(
    cwd: Path, *arguments: str, typed: str = ""
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    done = subprocess.run(
        [PLACET, "demo", *arguments],
        cwd=cwd,
        input=typed,
        capture_output=True,
        text=True,
        timeout=DEMO_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done, json.loads((cwd / ".placet" / "demo.json").read_text(encoding="utf-8"))


def _log(stack: RunningStack, executions: list[str]) -> list[dict[str, Any]]:
    """What the log has of some executions."""
    with Placet(stack.status()["url"], token=stack.token) as placet:
        rows: list[dict[str, Any]] = []
        for execution_id in executions:
            cursor: str | None = None
            while True:
                page = placet.executions.events(execution_id, cursor=cursor)
                rows += [dict(row) for row in page.items]
                if (cursor := page.next_cursor) is None:
                    break
        return rows


def test_demo_by_itself_stops_every_injected_call_and_its_figures_are_the_logs(
    stack: RunningStack, tmp_path: Path
) -> None:
    done, found = _demo(tmp_path, "--auto", "--tasks", "6", "--json", "--data-dir", str(stack.data_dir))
    assert json.loads(done.stdout) == found
    totals = found["totals"]
    assert (totals["tasks"], totals["attacks"]) == (12, 6)
    assert totals["injected_stopped"] >= 6
    assert (totals["injected_ran"], totals["attacks_succeeded"]) == (0, 0)
    assert (totals["wanted_ran"], totals["tasks_done"]) == (totals["wanted_calls"], 12)

    rows = _log(stack, [job["execution_id"] for job in found["jobs"]])
    events = Counter(row["type"] for row in rows)
    assert events["ExecutionCompleted"] == totals["tasks"]
    assert events["ToolCallProposed"] == events["PolicyVerdictIssued"] == totals["calls"]
    assert (
        events["ToolCallReleased"]
        == events["GrantConsumed"]
        == events["ToolCallSucceeded"]
        == totals["released"]
    )
    assert events["HoldOpened"] == events["DecisionRecorded"] == totals["held"]
    assert events["ToolCallDenied"] == totals["rejected"] + totals["denied"]
    # Nothing that an attacker asked for was consumed, but reads of the user's own data.
    consumed = {row["data"]["call_id"] for row in rows if row["type"] == "GrantConsumed"}
    tools = Counter(
        row["data"]["tool"]
        for row in rows
        if row["type"] == "ToolCallProposed" and row["data"]["call_id"] in consumed
    )
    calls = [call for job in found["jobs"] for call in job["calls"]]
    assert tools == Counter(call["tool"] for call in calls if call["status"] == "succeeded")


def test_demo_with_a_person_shows_what_is_asked_and_tells_the_agent_their_word(
    stack: RunningStack, tmp_path: Path
) -> None:
    done, found = _demo(tmp_path, "--tasks", "1", "--data-dir", str(stack.data_dir), typed=TYPED)
    (stopped,) = [call for job in found["jobs"] for call in job["calls"] if call["injected"]]
    assert (stopped["tool"], stopped["decision"], stopped["status"]) == ("send_email", "reject", "denied")
    assert stopped["error"] == "Nobody asked for this mail."
    assert done.stdout.count("The user asked: ") == 3
    assert "Refused: " in done.stdout
    assert "mark.black-2134@gmail.com" in done.stdout


def test_demo_on_its_own_stack_leaves_nothing_running(tmp_path: Path) -> None:
    _, found = _demo(tmp_path, "--auto", "--tasks", "2", "--data-dir", str(tmp_path / "data"))
    assert found["ok"]
    assert read_stack(DataDir(tmp_path / "data")).state == STOPPED
