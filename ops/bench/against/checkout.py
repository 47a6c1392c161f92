"""A commit checked out beside the working tree for a while, with an environment that is kept for the next time.

The tree stands at the same path each time, because a virtual environment names its own: in the cache directory, at
`against/COMMIT/tree`. When it goes, its environment is moved out of it to `against/COMMIT/venv`, and back again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ops import process
from ops.bench.against.revision import VENV, Tree, git, plain_environ
from ops.bench.load import BenchFailedError
from ops.errors import UsageError

SHORT = 12
SetUp = Callable[[Path, Path], None]


def set_up(tree: Path, log: Path) -> None:
    """Make a tree's virtual environment as the tree itself does, on the interpreter of the working tree's.

    Raises:
        BenchFailedError: it failed; the message names its log.
    """
    environ = plain_environ() | {"PYTHON": str(Path(sys.executable).resolve())}
    log.unlink(missing_ok=True)
    making = process.spawn(("make", "setup"), log, environ, cwd=tree)
    try:
        code = making.wait()
    except BaseException:
        # What make started is in its session and does not end with it.
        os.killpg(making.pid, signal.SIGKILL)
        making.wait()
        raise
    if code != 0:
        raise BenchFailedError(f"`make setup` of {tree} failed: read {log}.")


@contextmanager
def checked_out(repository: Path, commit: str, cache: Path, make: SetUp = set_up) -> Iterator[Tree]:
    """A commit in a worktree of its own, ready to run; removed at the end.

    Args:
        repository: a checkout of the repository.
        commit: its full name.
        cache: where environments are kept.
        make: makes the virtual environment of a tree, or sees that it is whole.

    Raises:
        UsageError: another comparison with this commit runs.
        BenchFailedError: it could not be checked out or set up.
    """
    base = cache / commit
    tree, kept = base / "tree", base / "venv"
    with _held(base):
        # Of a run that was killed.
        _remove(repository, tree)
        is_whole = False
        try:
            _add(repository, commit, tree)
            if kept.is_dir():
                kept.rename(tree / VENV)
            make(tree, base / "setup.log")
            is_whole = True
            yield Tree(commit[:SHORT], tree, tree / VENV / "bin" / "python")
        finally:
            if is_whole:
                (tree / VENV).rename(kept)
            _remove(repository, tree)


def _add(repository: Path, commit: str, tree: Path) -> None:
    done = git(repository, "worktree", "add", "--detach", str(tree), commit)
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or ["git said nothing"]
        raise BenchFailedError(f"{commit[:SHORT]} could not be checked out: {words[-1]}")


def _remove(repository: Path, tree: Path) -> None:
    """Remove a worktree and what git knows of it; a directory that another repository left goes as well."""
    git(repository, "worktree", "remove", "--force", "--force", str(tree))
    if tree.exists():
        shutil.rmtree(tree)


@contextmanager
def _held(base: Path) -> Iterator[None]:
    base.mkdir(parents=True, exist_ok=True)
    with (base / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"Another comparison with {base.name[:SHORT]} runs: wait for its end."
            ) from error
        yield
