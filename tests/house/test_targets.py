"""What the Makefile's targets start."""

from __future__ import annotations

import subprocess

import pytest

from tests.house.sources import ROOT


@pytest.mark.parametrize(("given", "started"), [((), "placet up"), (("PORT=9000",), "placet up --port 9000")])
def test_up_takes_a_port(given: tuple[str, ...], started: str) -> None:
    command = ["make", "--no-print-directory", "--dry-run", "up", *given]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.rstrip().endswith(started)
