"""A comparison as a person reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from ops.bench.against.pair import Pair, Spread
from ops.bench.against.required import Required
from ops.bench.table import number


def table(
    name: str, heads: tuple[str, str], pairs: Sequence[Pair], required: Mapping[str, Sequence[Required]]
) -> Table:
    """One row a figure: both sides and their ratio as median (least–greatest), and what is required of it."""
    found = Table(name, "unit", *heads, "ratio", "required")
    for column in found.columns[2:]:
        column.justify, column.no_wrap = "right", True
    for pair in pairs:
        spreads = (_spread(values) for values in (pair.ours, pair.theirs, pair.ratios))
        found.add_row(pair.named.name, pair.named.unit, *spreads, _verdicts(pair, required.get(pair.key, ())))
    return found


def _spread(values: Sequence[float]) -> str:
    spread = Spread.of(values)
    if spread is None:
        return "–"
    return f"{number(spread.median)} ({number(spread.least)}–{number(spread.greatest)})"


def _verdicts(pair: Pair, required: Sequence[Required]) -> Text:
    told = Text()
    for one in required:
        way = "≤" if one.target.at_most else "≥"
        verdict = ("ok", "green") if one.is_met(pair) else ("short", "red")
        told.append(
            f"{'  ' if told else ''}{way} {number(one.target.limit)}{'×' if one.is_of_ratio else ''} "
        )
        told.append(*verdict)
    return told
