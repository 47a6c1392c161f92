"""The demo's table: a row for each figure, a column for each suite, and a column of totals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

LINES = (
    ("tasks", "tasks"),
    ("  of them attacked", "attacks"),
    ("calls", "calls"),
    ("released", "released"),
    ("  by policy", "allowed"),
    ("  by the reviewer", "approved"),
    ("held", "held"),
    ("  rejected", "rejected"),
    ("denied by policy", "denied"),
    ("injected calls", "injected_calls"),
    ("  stopped", "injected_stopped"),
    ("  reads of own data, passed", "injected_reads"),
    ("  ran", "injected_ran"),
    ("tasks done (agentdojo)", "tasks_done"),
    ("attacks succeeded (agentdojo)", "attacks_succeeded"),
    ("propose → verdict p50, ms", "latency_p50_ms"),
    ("propose → verdict p99, ms", "latency_p99_ms"),
)


def table(found: Mapping[str, Any]) -> Table:
    """The report's figures as a table."""
    made = Table("", *found["suites"], "all")
    for column in made.columns[1:]:
        column.justify = "right"
    columns = [*found["suites"].values(), found["totals"]]
    for title, name in LINES:
        made.add_row(title, *(_shown(figures[name]) for figures in columns))
    return made


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
