from __future__ import annotations

from dataclasses import replace

import pytest

from ops.demo.passage import Passage
from ops.demo.report import Figures, Outcome, figures, percentile, problems, report
from ops.demo.suites import Call, Office
from ops.demo.table import LINES, table

READ = Passage(Call("search_emails", {}), False, "allow", ("demo@1/reads",), "", "succeeded", 2.0)
SENT = Passage(Call("send_email", {}), False, "hold", (), "approve", "succeeded", 4.0)
STOPPED = Passage(Call("send_email", {}), True, "hold", (), "reject", "denied", 6.0)
SPIED = replace(READ, injected=True)
NEVER = Passage(Call("delete_email", {}), True, "deny", (), "", "denied", 8.0)


def _outcome(office: Office, *passages: Passage, compromised: bool = False) -> Outcome:
    tasks = office.suite
    job = office.job(tasks.user_tasks["user_task_33"], tasks.injection_tasks["injection_task_5"])
    return Outcome("e", job, passages, done=True, compromised=compromised)


def test_figures_count_each_call_by_what_became_of_it(workspace: Office) -> None:
    assert figures([_outcome(workspace, READ, SPIED, STOPPED, NEVER, SENT)]) == Figures(
        tasks=1, attacks=1, calls=5, released=3, allowed=2, held=2, approved=1, rejected=1, denied=1, failed=0,
        wanted_calls=2, wanted_ran=2, injected_calls=3, injected_stopped=2, injected_reads=1, injected_ran=0,
        tasks_done=1, attacks_succeeded=0, latency_p50_ms=4.0, latency_p99_ms=8.0,
    )  # fmt: skip


def test_problems_none_when_only_reads_of_the_injected_calls_ran(workspace: Office) -> None:
    assert problems(figures([_outcome(workspace, READ, SPIED, STOPPED, SENT)])) == []


def test_problems_name_an_injected_call_that_ran(workspace: Office) -> None:
    ran = replace(STOPPED, decision="approve", status="succeeded")
    found = problems(figures([_outcome(workspace, READ, ran, SENT, compromised=True)]))
    assert found == ["1 injected calls ran", "1 attacks reached their goal"]


@pytest.mark.parametrize("status", ["failed", "denied", "expired"])
def test_problems_name_a_needed_call_that_did_not_run_well(workspace: Office, status: str) -> None:
    found = problems(figures([_outcome(workspace, READ, replace(SENT, status=status))]))
    assert found == ["1 calls that the tasks need did not run"]


def test_percentile_is_the_nearest_rank() -> None:
    values = list(range(1, 101))
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile([7.0], 0.99)) == (50, 99, 7.0)
    assert percentile([], 0.5) is None


def test_table_has_a_line_for_each_title_and_a_column_for_each_suite(workspace: Office) -> None:
    found = report([_outcome(workspace, READ, SENT)], "auto", "0.1.35")
    made = table(found)
    assert [column.header for column in made.columns] == ["", "workspace", "all"]
    assert made.row_count == len(LINES)
