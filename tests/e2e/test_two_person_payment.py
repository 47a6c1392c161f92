"""The documented payment: two people decide it, it runs once, and its proof is verified without a server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.stack, pytest.mark.broker]

WALK = Path(__file__).parents[2] / "examples" / "two-person-payment" / "walk.sh"


def test_payment_of_two_people_is_decided_run_once_proved_and_verified_offline(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PLACET_")}

    done = subprocess.run(
        ["bash", str(WALK), str(tmp_path)],
        env={**plain, "PATH": path},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "already_voted: one person counts once" in said
    assert said.count("paid 98.7 to GB29NWBK60161331926819") == 1
    assert "\nverified: 1 leaf, with its record" in said
    assert "NOT verified: 1 leaf" in said
    trail = [line for line in said.splitlines() if line.startswith("verified: ")]
    assert len(trail) == 2, said
