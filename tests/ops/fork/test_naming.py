"""The names of forks' projects: a fork's run is recognised, and no other."""

from __future__ import annotations

import pytest

from ops.fork.naming import fork_project, is_fork


@pytest.mark.parametrize("execution_id", ["invoice-april", "a/b", "ä" * 120, "x"])
def test_run_of_a_fork_is_recognised_by_its_project(execution_id: str) -> None:
    assert is_fork(fork_project(execution_id), execution_id)
    assert not is_fork(fork_project(execution_id), "another")


@pytest.mark.parametrize(
    "project",
    [
        "main",
        "fork-x",
        "fork-x-",
        "fork-x-trucks",
        "fork-x-0123456789",
        "fork-x-0123456g",
        "a-fork-x-01234567",
    ],
)
def test_project_of_another_form_has_no_fork(project: str) -> None:
    assert not is_fork(project, "x")
