"""The checker must prove itself: every bug planted here is found, in a world that is clean without it.

`test_simulation` runs those worlds without a bug.
"""

from __future__ import annotations

import pytest

from tests.simulation.planted import BUGS
from tests.simulation.seeds import USUAL
from tests.simulation.world import run_world

# Among so few worlds the simulation must show each bug.
WORLDS = 60


@pytest.mark.parametrize("name", BUGS)
def test_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS[name]
    seed, told_by = -1, set[str]()
    # The world that showed the bug last comes first; where worlds have changed since, all are searched.
    worlds = iter((bug.world, *(other for other in range(WORLDS) if other != bug.world)))
    while not told_by:
        seed = next(worlds, -1)
        assert seed >= 0, f"{name} was not found in {WORLDS} worlds"
        with monkeypatch.context() as patch:
            bug.plant(patch)
            told_by = {violation.invariant for violation in run_world(seed).violations}

    assert told_by & set(bug.told_by), f"{name} was told as {told_by} in world {seed}"
    assert seed < USUAL, "no other test runs this world without the bug"
