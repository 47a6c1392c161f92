"""The checkers and generators of others, as ops/setup/tools.sh installed them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".venv" / "tools"
TIMEOUT_S = 280.0


def run_tool(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a tool by its name; what it prints is in the answer.

    Raises:
        AssertionError: it failed, or the tools are not installed.
    """
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=_environment(environment),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def start_tool(*command: str | Path, **environment: str) -> subprocess.Popen[str]:
    """Start a tool that goes on while the test does."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [str(part) for part in command],
        env=_environment(environment),
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
    )


def _environment(more: dict[str, str]) -> dict[str, str]:
    assert (HOME / "setup.stamp").exists(), "the tools are not installed: run make tools"
    path = os.pathsep.join([str(HOME / "bin"), str(HOME / "node/node_modules/.bin"), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "NO_COLOR": "1", **more}


def with_packages(directory: Path) -> Path:
    """A directory in which Node.js finds the packages."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("node_modules", "package.json"):
        (directory / name).symlink_to(HOME / "node" / name)
    return directory
