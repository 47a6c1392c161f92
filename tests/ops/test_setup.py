"""`make setup` on an environment of which something is gone: it is not taken for whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "ops" / "setup" / "installed_files.py"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small environment with one distribution, installed as an installer leaves it."""
    home = tmp_path_factory.mktemp("small") / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True, timeout=60)
    site = next(home.glob("lib/python3*/site-packages"))
    (site / "some_tool").mkdir()
    info = site / "some_tool-1.0.dist-info"
    info.mkdir()
    (site / "some_tool" / "__init__.py").write_text("")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Some.Tool\nVersion: 1.0\n")
    (info / "RECORD").write_text(
        "some_tool/__init__.py,,\nsome_tool/__pycache__/x.pyc,,\n"
        "some_tool-1.0.dist-info/METADATA,,\nsome_tool-1.0.dist-info/RECORD,,\n"
    )
    return home


def said(environment: Path, lock: str) -> tuple[int, str]:
    file = environment.parent / "some.lock"
    file.write_text(lock)
    done = subprocess.run(
        [str(environment / "bin" / "python"), str(SCRIPT), str(file)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr


def test_whole_environment_is_taken_for_one(environment: Path) -> None:
    assert said(environment, "some-tool==1.0 \\\n    --hash=sha256:00\n") == (0, "")


def test_environment_without_a_distribution_of_the_lock_is_damaged(environment: Path) -> None:
    assert said(environment, "some-tool==1.0\nother==2\n") == (1, ".venv is damaged (other is gone)\n")


def test_environment_without_a_file_is_damaged(environment: Path) -> None:
    file = next(environment.glob("lib/python3*/site-packages")) / "some_tool" / "__init__.py"
    file.unlink()
    try:
        code, text = said(environment, "some-tool==1.0\n")
    finally:
        file.write_text("")
    assert code == 1
    assert "some_tool/__init__.py is gone" in text


def test_setup_looks_before_it_says_that_all_is_there() -> None:
    script = (ROOT / "ops" / "setup" / "environment.sh").read_text(encoding="utf-8")
    assert script.index("is_whole && exit 0") < script.index("Installing what")
