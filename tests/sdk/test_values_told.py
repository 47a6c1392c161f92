"""What `placet show` says of a call's values."""

from typing import Any

import pytest

from placet.cli.viewing import values_told
from placet.models import Verdict


@pytest.mark.parametrize(
    ("history", "told"),
    [
        (None, ""),
        ({"novel": [], "tainted": [], "sources": [], "is_whole": True}, ""),
        ({"novel": ["cc", "to"]}, "new to this agent and tool: cc, to"),
        (
            {"novel": ["to"], "tainted": ["to"], "sources": ["c1", "c2"], "is_whole": True},
            "new to this agent and tool: to; out of an untrusted output of this run: to (of c1, c2)",
        ),
        ({"is_whole": False}, "too many, or not read alike by all programs"),
    ],
    ids=["before", "known", "new", "tainted", "many"],
)
def test_values_are_told_with_where_they_come_from(history: Any, told: str) -> None:
    assert values_told(Verdict(history=history)) == told


def test_call_without_a_verdict_tells_nothing() -> None:
    assert values_told(None) == ""
