"""The terminal that the tests of the command type at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sdk.scripted import Scripted
from tests.sdk.terminal import Terminal, gateway
from tests.sdk.threaded import serving_thread


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str]) -> Iterator[Terminal]:
    with serving_thread(Scripted(on_http=gateway)) as script:
        yield Terminal(script, capsys)
