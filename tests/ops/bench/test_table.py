"""The table that a person reads."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from ops.bench.result import Figure, Result, Target
from ops.bench.table import table


def test_table_shows_floor_ratio_target_and_verdict() -> None:
    figures = (
        Figure("propose → verdict", 7.5, "ms", floor=3.0, target=Target(2)),
        Figure("calls", 4_321.0, "calls/s", floor=32_000.0, target=Target(1 / 8, at_most=False)),
        Figure("CPU", 0.25, "ms/call"),
    )
    lines = _printed(Result("gate", figures))
    assert _cells(lines, "propose → verdict") == ["7.5 ms", "3", "2.5", "≤ 2", "short"]
    assert _cells(lines, "calls ") == ["4,321 calls/s", "32,000", "0.135", "≥ 0.125", "ok"]
    assert _cells(lines, "CPU") == ["0.25 ms/call"]


def _printed(result: Result) -> list[str]:
    out = StringIO()
    Console(file=out, width=80).print(table(result))
    return out.getvalue().splitlines()


def _cells(lines: list[str], figure: str) -> list[str]:
    (line,) = (line for line in lines if figure in line)
    return [cell.strip() for cell in line.split("│")[2:] if cell.strip()]
