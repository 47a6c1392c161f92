"""The figures of an evaluation as a table, for the terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from ops.evaluation.arms import BY_NAME
from ops.evaluation.result import LAST, arms_in, is_measured, series, suites_in

HEADS = (
    "suite",
    "arm",
    "interruptions a task, round 1",
    f"last {LAST} rounds",
    "fewer than asking every write",
    "attacks",
    "held",
    "released",
    "attackers' calls that trust released",
)

NOT_MEASURED = "not measured"


def rows(found: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    """A row of texts for each suite and arm, in the order of `HEADS`."""
    for suite in suites_in(found):
        for arm in arms_in(found):
            yield _row(found, suite, arm)


def _row(found: Mapping[str, Any], suite: str, arm: str) -> Sequence[str]:
    if not is_measured(found, arm, suite):
        return suite, BY_NAME[arm].title, *[NOT_MEASURED] * (len(HEADS) - 2)
    asked = series(found, arm, suite, "benign_interruptions")
    tasks = series(found, arm, suite, "tasks")
    fewer = found["fewer"][suite][arm]["last"]
    total = {
        name: str(sum(series(found, arm, suite, name)))
        for name in ("attacks", "attacks_held", "attacks_released", "attack_calls_by_trust")
    }
    return (
        suite,
        BY_NAME[arm].title,
        f"{asked[0] / tasks[0]:.2f}",
        f"{sum(asked[-LAST:]) / sum(tasks[-LAST:]):.2f}",
        "–" if fewer is None else f"{100 * fewer:.0f} %",
        *total.values(),
    )


def table(found: Mapping[str, Any]) -> Table:
    """For a terminal."""
    made = Table(*HEADS)
    for column in made.columns[2:]:
        column.justify = "right"
    for row in rows(found):
        made.add_row(*row)
    return made


def markdown(found: Mapping[str, Any]) -> str:
    """For a page."""
    lines = [HEADS, ["---", "---", *["---:"] * (len(HEADS) - 2)], *rows(found)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
