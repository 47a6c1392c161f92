"""The two trees that are compared: the one that this program runs from, and a commit of the same repository."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ops.bench.load import TIMEOUT_S, BenchFailedError
from ops.errors import UsageError
from ops.process import PACKAGE_ROOT

VENV = ".venv"
# Where a stack is or what it uses: a stack that is measured has what its command line says and nothing else.
OWN_VARIABLES = ("PLACET_", "DATABASE_URL", "GIT_", "PYTHONPATH", "VIRTUAL_ENV")
# Downloads are shared: each is known by its digest.
CACHE_VARIABLE = "PLACET_CACHE"


@dataclass(frozen=True, slots=True)
class Tree:
    """Source of one version, and the interpreter whose packages it runs with.

    Attributes:
        name: how it is called in tables.
        root: its directory.
        python: the interpreter of its virtual environment.
    """

    name: str
    root: Path
    python: Path

    @property
    def environ(self) -> dict[str, str]:
        """The variables that its programs run with: this tree's modules come first, wherever others are installed."""
        return plain_environ() | {"PYTHONPATH": os.pathsep.join(map(str, (self.root, self.root / "sdk/src")))}

    def command(self, *arguments: str) -> tuple[str, ...]:
        """The command line of its own `placet`."""
        return str(self.python.with_name("placet")), *arguments

    def placet(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run its own `placet`, in its own directory."""
        return subprocess.run(  # noqa: S603 - the command is built here
            self.command(*arguments),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            env=self.environ,
            cwd=self.root,
        )

    def said(self, *arguments: str) -> str:
        """What its own `placet` prints.

        Raises:
            BenchFailedError: it failed; the message ends with its last words.
        """
        done = self.placet(*arguments)
        if done.returncode != 0:
            words = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["it said nothing"]
            raise BenchFailedError(f"{self.name}: placet {arguments[0]} failed: {words[-1]}")
        return done.stdout


def plain_environ(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without what would lead a tree's programs to another stack, tree or repository."""
    given = os.environ if environ is None else environ
    return {
        name: value
        for name, value in given.items()
        if name == CACHE_VARIABLE or not name.startswith(OWN_VARIABLES)
    }


def working_tree() -> Tree:
    """The tree that this program runs from, with what is changed in it."""
    return Tree("working tree", PACKAGE_ROOT, Path(sys.executable))


def git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in a repository, without its hooks."""
    try:
        return subprocess.run(  # noqa: S603 - the command is built here
            ["git", "-C", str(repository), "-c", "core.hooksPath=/dev/null", *arguments],  # noqa: S607 - the user's git
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=plain_environ(),
        )
    except FileNotFoundError as error:
        raise UsageError("--against needs git: install it.") from error


def resolve(repository: Path, ref: str) -> str:
    """The commit that a name stands for.

    Raises:
        UsageError: the directory is no checkout of its own, or has no such commit.
    """
    top = git(repository, "rev-parse", "--show-toplevel").stdout.strip()
    if not top or Path(top) != repository.resolve():
        raise UsageError(
            f"--against compares commits of a git repository, and {repository} is not a checkout of one."
        )
    found = git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if found.returncode != 0:
        raise UsageError(f"--against {ref}: the repository in {repository} has no such commit.")
    return found.stdout.strip()


def described(repository: Path) -> str:
    """The commit that is checked out, with `-dirty` where files differ from it."""
    return git(repository, "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12").stdout.strip()
