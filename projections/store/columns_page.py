"""docs/columns.md, made from the comments: `python -m projections.store.columns_page` writes it again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from projections.store.comments import comment_of, is_moment
from projections.store.tables import OFFERED
from projections.tables.columns import Column, ColumnType, Offer, Reads
from projections.tables.trust_days import TRUST_DAYS

PAGE = "docs/columns.md"
_HEAD = """# Tables and columns of the views

Every table and SQL view for analysts, column by column, as in PostgreSQL's comments
(`\\d+ placet.holds`).
[views.md](views.md) describes how to read them, [cookbook.md](cookbook.md) has example queries. In PostgreSQL a
column marked *time* is also available as `timestamptz` (`opened_at_ms`: `opened_at`), one marked *JSON* as `jsonb`
(`arguments`: `arguments_json`).

The last one, `trust_days`, is only in the files of `placet export --star` ([analysis.md](analysis.md)).

Two tables hold no facts and are left out: `tracking` belongs to the `eventsourcing` library (how far this view has
read, as in `placet_positions`), and `placet_layout` has one row, the version of these tables.

This page is generated from `projections/tables` by `python -m projections.store.columns_page`.
"""

_SHOWN: dict[ColumnType, str] = {"text": "text", "int": "integer", "real": "number", "bytes": "bytes"}


def columns_page() -> str:
    """The whole page."""
    return _HEAD + "".join(line for offer in (*OFFERED, TRUST_DAYS) for line in _table(offer))


def _table(offer: Offer[Any]) -> Iterator[str]:
    yield f"\n## {offer.name}\n\n{offer.meaning}\n\n| column | type | meaning |\n|---|---|---|\n"
    for column in offer.columns:
        yield f"| `{column.name}` | {_kind(column)} | {comment_of(column)} |\n"


def _kind(column: Column) -> str:
    if column.reads is Reads.DAY:
        return Reads.DAY.value
    marks = (("time", is_moment(column.name)), ("JSON", column.reads is Reads.JSON))
    return ", ".join([_SHOWN[column.type], *(mark for mark, is_so in marks if is_so)])


if __name__ == "__main__":
    Path(PAGE).write_text(columns_page())
