"""A comparison on real parts: the commit that is checked out, with itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ops.bench.against import command
from ops.bench.against.command import asked, results
from ops.process import PACKAGE_ROOT
from tests.ops.bench.against.repository import worktrees

pytestmark = [pytest.mark.stack, pytest.mark.broker, pytest.mark.timeout(600)]


def _borrowed(tree: Path, _: Path) -> None:
    """The environment of these tests: the commit asks for the same."""
    (tree / ".venv").symlink_to(sys.prefix, target_is_directory=True)


def test_commit_is_compared_with_itself_scenario_by_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "cache_dir", lambda: tmp_path)
    before = worktrees(PACKAGE_ROOT)
    what = asked("HEAD", (), 1, ["gate-rate>=0.01x", "verdict-hops>=1"], is_quick=True)
    found = list(results(what, show=False, make=_borrowed))
    assert [one.scenario.name for one in found] == ["gate", "holds", "latency", "idle", "rebuild"]
    pairs = {pair.key: pair for one in found for pair in one.pairs}
    assert {"gate-cpu-trust", "holds-cpu-gateway", "latency-cpu-decider", "idle-broker-cpu"} <= set(pairs)
    for key, pair in pairs.items():
        assert (len(pair.ours), len(pair.theirs)) == (1, 1), key
        if "-cpu" not in key:
            assert pair.ours[0] > 0, key
            assert pair.theirs[0] > 0, key
    assert all(required.is_met(pairs[required.key]) for required in what.required)
    assert worktrees(PACKAGE_ROOT) == before
