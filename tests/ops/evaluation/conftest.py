"""The four suites, opened once: agentdojo's import is seconds of work."""

from __future__ import annotations

import pytest

from ops.demo.suites import Office
from ops.evaluation.rounds import SUITES


@pytest.fixture(scope="session")
def offices() -> dict[str, Office]:
    return {name: Office(name) for name in SUITES}
