"""Imports point back along the data and never forward (`.importlinter`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.house.sources import ROOT


def test_every_import_contract_is_kept() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
