"""Figures as a person reads them."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from ops.bench.result import Figure, Result, rounded


def table(result: Result) -> Table:
    """One row a figure: its floor, the ratio, the target, and whether it is reached."""
    found = Table(result.name, "measured", "floor", "ratio", "target", "")
    for column in found.columns[1:5]:
        column.justify, column.no_wrap = "right", True
    for figure in result.figures:
        found.add_row(*_cells(figure))
    return found


def _cells(figure: Figure) -> tuple[str | Text, ...]:
    verdict = {True: Text("ok", "green"), False: Text("short", "red"), None: Text()}
    return (
        figure.name,
        f"{number(figure.value)} {figure.unit}",
        "" if figure.floor is None else number(figure.floor),
        "" if figure.ratio is None else number(figure.ratio),
        _target(figure),
        verdict[figure.is_ok],
    )


def _target(figure: Figure) -> str:
    if figure.target is None:
        return ""
    return f"{'≤' if figure.target.at_most else '≥'} {number(figure.target.limit)}"


def number(value: float) -> str:
    """Four significant digits at most, thousands apart."""
    short = rounded(value)
    return f"{short:,.0f}" if abs(short) >= 100 else f"{short:g}"
