"""The comparison that a person reads."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from ops.bench.against.pair import Pair
from ops.bench.against.required import parsed
from ops.bench.against.scenarios import Named
from ops.bench.against.table import table


def test_table_shows_both_sides_the_ratio_and_what_is_required() -> None:
    pairs = (
        Pair("rate", Named("calls", "calls/s"), (2_000.0, 3_000.0, 1_000.0), (1_000.0,) * 3),
        Pair("cpu", Named("CPU of new", "ms/call"), (0.25,), ()),
    )
    required = {"rate": [parsed("rate>=2.5x", ["rate"]), parsed("rate>=1500", ["rate"])]}
    lines = _printed(table("gate", ("working tree", "0123456789ab"), pairs, required))
    assert _cells(lines, "calls ") == [
        "calls/s",
        "2,000 (1,000–3,000)",
        "1,000 (1,000–1,000)",
        "2 (1–3)",
        "≥ 2.5× short  ≥ 1,500 ok",
    ]
    assert _cells(lines, "CPU") == ["ms/call", "0.25 (0.25–0.25)", "–", "–"]


def _printed(made: object) -> list[str]:
    out = StringIO()
    Console(file=out, width=140).print(made)
    return out.getvalue().splitlines()


def _cells(lines: list[str], figure: str) -> list[str]:
    (line,) = (line for line in lines if figure in line)
    return [cell.strip() for cell in line.split("│")[2:] if cell.strip()]
