"""A git repository of two commits, and what git says of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

IDENTITY = ("-c", "user.name=Bench", "-c", "user.email=bench@example.test", "-c", "commit.gpgsign=false")
MAKEFILE = "setup:\n\t@mkdir -p .venv/bin && echo made >> .venv/made\n"


def git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def new_repository(root: Path, makefile: str = MAKEFILE) -> tuple[str, str]:
    """Two commits: one has a Makefile and `word` says `first`, in the other it says `second`; their names."""
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / "Makefile").write_text(makefile, encoding="utf-8")
    return _commit(root, "first"), _commit(root, "second")


def worktrees(repository: Path) -> int:
    """How many there are beside the repository's own."""
    return git(repository, "worktree", "list", "--porcelain").count("worktree ") - 1


def _commit(root: Path, word: str) -> str:
    (root / "word").write_text(word, encoding="utf-8")
    git(root, "add", "--all")
    git(root, *IDENTITY, "commit", "--quiet", "--message", word)
    return git(root, "rev-parse", "HEAD")
