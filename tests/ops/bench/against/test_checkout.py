"""A commit beside the working tree: checked out, set up once, and gone afterwards, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ops.bench.against.checkout import checked_out
from ops.bench.load import BenchFailedError
from ops.errors import UsageError
from tests.ops.bench.against.repository import git, new_repository, worktrees
from tests.servers.stack import wait_for

CHECK_OUT = """
import sys
from pathlib import Path
from ops.bench.against.checkout import checked_out
from ops.bench.against.ending import ended_by_signals
repository, commit, cache = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
with ended_by_signals(), checked_out(repository, commit, cache) as tree:
    print("ready", flush=True)
    sys.stdin.read()
"""
SLOW = "setup:\n\t@mkdir -p .venv; echo $$$$ > .venv/../../making; sleep 300; true\n"


class Ended(BaseException):
    """Whatever ends a run."""


def _leftovers(repository: Path, base: Path) -> list[str]:
    assert worktrees(repository) == 0
    assert git(repository, "status", "--porcelain") == ""
    return sorted(path.name for path in base.iterdir() if path.name not in ("lock", "setup.log"))


def test_commit_is_checked_out_and_set_up_once(tmp_path: Path) -> None:
    root, cache = tmp_path / "repository", tmp_path / "cache"
    first, _ = new_repository(root)
    for turn in (1, 2):
        with checked_out(root, first, cache) as tree:
            assert (tree.root / "word").read_text(encoding="utf-8") == "first"
            assert tree.python == tree.root / ".venv" / "bin" / "python"
            assert tree.name == first[:12]
            made = (tree.root / ".venv" / "made").read_text(encoding="utf-8")
            assert made == "made\n" * turn, "the environment of the turn before was there"
            (tree.root / "word").write_text("changed", encoding="utf-8")
        assert _leftovers(root, cache / first) == ["venv"]


@pytest.mark.parametrize("error", [BenchFailedError("a load failed"), KeyboardInterrupt(), Ended()])
def test_whatever_ends_a_run_the_worktree_goes(tmp_path: Path, error: BaseException) -> None:
    root, cache = tmp_path / "repository", tmp_path / "cache"
    first, _ = new_repository(root)
    with pytest.raises(type(error)), checked_out(root, first, cache):
        raise error
    assert _leftovers(root, cache / first) == ["venv"]


def test_environment_that_was_not_made_whole_is_not_kept(tmp_path: Path) -> None:
    root, cache = tmp_path / "repository", tmp_path / "cache"
    first, _ = new_repository(root, "setup:\n\t@mkdir .venv; echo no index answers; false\n")
    with pytest.raises(BenchFailedError, match=r"failed: read .*setup\.log"), checked_out(root, first, cache):
        pass
    assert _leftovers(root, cache / first) == []
    assert "no index answers" in (cache / first / "setup.log").read_text(encoding="utf-8")


def test_second_comparison_with_the_same_commit_is_refused(tmp_path: Path) -> None:
    root, cache = tmp_path / "repository", tmp_path / "cache"
    first, second = new_repository(root)
    with checked_out(root, first, cache), checked_out(root, second, cache):
        with pytest.raises(UsageError, match="Another comparison with"), checked_out(root, first, cache):
            pass
        assert worktrees(root) == 2
    assert worktrees(root) == 0


def _begun(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHECK_OUT, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_interrupted_run_leaves_nothing_though_it_is_interrupted_twice(tmp_path: Path) -> None:
    root, cache = tmp_path / "repository", tmp_path / "cache"
    first, _ = new_repository(root)
    with _begun(root, first, cache) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGINT)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    assert "The comparison was stopped" in said
    assert _leftovers(root, cache / first) == ["venv"]


def test_interrupted_set_up_leaves_no_process_and_no_environment(tmp_path: Path) -> None:
    root, cache = tmp_path / "repository", tmp_path / "cache"
    first, _ = new_repository(root, SLOW)
    making = cache / first / "making"
    with _begun(root, first, cache) as running:
        wait_for(making.is_file, bool)
        shell = int(wait_for(lambda: making.read_text(encoding="utf-8").strip(), bool))
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=30)
    assert _gone(shell)
    making.unlink()
    assert _leftovers(root, cache / first) == []


def test_run_after_one_that_was_killed_removes_what_that_left(tmp_path: Path) -> None:
    root, cache = tmp_path / "repository", tmp_path / "cache"
    first, _ = new_repository(root)
    with _begun(root, first, cache) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.kill()
    assert worktrees(root) == 1
    with checked_out(root, first, cache) as tree:
        assert (tree.root / ".venv" / "made").read_text(encoding="utf-8") == "made\n"
    assert _leftovers(root, cache / first) == ["venv"]


def test_tree_that_another_repository_left_is_removed(tmp_path: Path) -> None:
    root, cache = tmp_path / "repository", tmp_path / "cache"
    first, _ = new_repository(root)
    stale = cache / first / "tree"
    stale.mkdir(parents=True)
    (stale / "word").write_text("stale", encoding="utf-8")
    with checked_out(root, first, cache) as tree:
        assert (tree.root / "word").read_text(encoding="utf-8") == "first"
    assert _leftovers(root, cache / first) == ["venv"]


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False
