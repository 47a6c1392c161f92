"""What was found in several partitions, added up as one process finds it."""

from __future__ import annotations

import pytest

from ops.backtest import found as module
from ops.backtest.found import Found, NotJudged, NotReproduced, Side


def side(effect: str) -> Side:
    return Side(effect, "matched", ("p/r",), "", "p@1")  # type: ignore[arg-type]


def counted(found: Found, *tools: str) -> Found:
    for number, tool in enumerate(tools):
        found.count(
            tool, number * 86_400_000, side("hold"), side("allow" if number % 2 else "hold"), ("p/r",)
        )
    return found


def test_sum_of_partitions_is_what_one_process_counts() -> None:
    one = counted(Found("*"), "pay", "read", "read", "send")
    several = Found("*")
    several.add(counted(Found("*"), "pay", "read"))
    rest = Found("*")
    for number, tool in ((2, "read"), (3, "send")):
        rest.count(tool, number * 86_400_000, side("hold"), side("allow" if number % 2 else "hold"), ("p/r",))
    several.add(rest)
    assert several == one
    assert (several.judged, several.count_of("newly_allowed")) == (4, 2)


def test_each_number_is_added() -> None:
    names = (
        *("records", "events", "refused", "unreadable", "set_aside", "planted", "forks", "judged"),
        *("reproduced", "unlisted"),
    )
    sum_of = Found("*")
    for _ in range(2):
        part = Found("*")
        for number, name in enumerate(names):
            setattr(part, name, number + 1)
        sum_of.add(part)
    assert [getattr(sum_of, name) for name in names] == [2 * (number + 1) for number in range(len(names))]


def test_lists_keep_the_first_and_tools_beyond_the_bound_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LISTED_MAX", 3)
    monkeypatch.setattr(module, "TOOLS_MAX", 2)
    sum_of = Found("*")
    for partition in range(2):
        part = counted(Found("*"), f"a{partition}", f"b{partition}", f"c{partition}")
        for offset in range(4):
            part.leave(NotJudged("t", partition, offset, "k", "why"))
            part.differ(NotReproduced("p", "x", "c", 1, partition, offset, {}))
        sum_of.add(part)
    assert [(one.partition, one.offset) for one in sum_of.not_judged] == [(0, 0), (0, 1), (0, 2)]
    assert [(one.partition, one.offset) for one in sum_of.not_reproduced] == [(0, 0), (0, 1), (0, 2)]
    assert sum_of.unlisted == 5
    assert {name: effects.total() for name, effects in sum_of.tools.items()} == {
        "a0": 1,
        "b0": 1,
        "(others)": 4,
    }
