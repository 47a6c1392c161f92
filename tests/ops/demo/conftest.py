"""The suites, opened once: agentdojo's import is seconds of work."""

from __future__ import annotations

import pytest

from ops.demo.suites import Office


@pytest.fixture(scope="session")
def workspace() -> Office:
    return Office("workspace")


@pytest.fixture(scope="session")
def slack() -> Office:
    return Office("slack")


@pytest.fixture
def offices(workspace: Office, slack: Office) -> list[Office]:
    return [workspace, slack]
