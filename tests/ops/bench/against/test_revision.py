"""The commit that a name stands for, and the environment that its programs run with."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.bench.against.revision import Tree, described, plain_environ, resolve
from ops.errors import UsageError
from tests.ops.bench.against.repository import git, new_repository


def test_names_of_a_commit_stand_for_the_same(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    first, second = new_repository(root)
    git(root, "tag", "v1", first)
    assert [resolve(root, name) for name in ("v1", "HEAD~1", first[:9])] == [first] * 3
    assert resolve(root, "main") == second


@pytest.mark.parametrize("name", ["no-such-branch", "--all", "HEAD:word", ""])
def test_name_of_no_commit_is_refused(tmp_path: Path, name: str) -> None:
    new_repository(tmp_path / "repository")
    with pytest.raises(UsageError, match="has no such commit"):
        resolve(tmp_path / "repository", name)


def test_directory_inside_another_checkout_is_no_repository_to_compare(tmp_path: Path) -> None:
    new_repository(tmp_path / "repository")
    inside = tmp_path / "repository" / "installed"
    inside.mkdir()
    for directory in (inside, tmp_path):
        with pytest.raises(UsageError, match="is not a checkout of one"):
            resolve(directory, "HEAD")


def test_changed_file_shows_in_what_was_measured(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    _, second = new_repository(root)
    assert described(root) == second[:12]
    (root / "word").write_text("third", encoding="utf-8")
    assert described(root) == f"{second[:12]}-dirty"


def test_tree_runs_with_its_own_modules_and_no_stack_of_others(tmp_path: Path) -> None:
    given = {
        "PATH": "/bin",
        "PYTHONPATH": "/elsewhere",
        "PLACET_BOOTSTRAP_SERVERS": "kafka:9092",
        "DATABASE_URL": "postgresql://views",
        "GIT_DIR": "/elsewhere/.git",
        "PLACET_CACHE": "/cache",
    }
    assert plain_environ(given) == {"PATH": "/bin", "PLACET_CACHE": "/cache"}
    tree = Tree("one", tmp_path, tmp_path / ".venv/bin/python")
    assert tree.environ["PYTHONPATH"] == f"{tmp_path}:{tmp_path}/sdk/src"
    assert tree.command("status") == (str(tmp_path / ".venv/bin/placet"), "status")
