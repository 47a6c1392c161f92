"""Times in query parameters: what is none is refused, with an example of one."""

from __future__ import annotations

import pytest

from gateway.problems import Problem
from gateway.rest.history import read_time


@pytest.mark.parametrize("text", ["yesterday", "2026-11-20", "2026-11-20T10:00:00"])
def test_time_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(
        Problem, match=r"since must be an RFC 3339 time with a zone, such as 2026-01-05T12:00:00Z$"
    ):
        read_time(text, "since")
