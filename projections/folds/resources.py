"""Rows as resources of the outward interface: each column as its table's declaration says it reads."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from projections.folds.rows import json_value, moment
from projections.tables.columns import Column, Offer, R, Reads

Make = Callable[[R], object]
_READS: dict[Reads, Callable[[Any], object]] = {
    Reads.JSON: json_value,
    Reads.MOMENT: moment,
    Reads.FLAG: bool,
}


def resource_of(offer: Offer[R], *parts: str | tuple[str, str | Make[R]]) -> Callable[[R], dict[str, Any]]:
    """What makes the resource of a row.

    Args:
        offer: the row's table or SQL view.
        parts: what the resource has, in order: a column under its own name (of a moment without `_ms`); under
            another; or a name and what makes the value of the row.

    Raises:
        KeyError: a part names no column.
    """
    columns = {column.name: column for column in offer.columns}
    made = tuple(_part(columns, part) for part in parts)

    def resource(row: R) -> dict[str, Any]:
        return {name: make(row) for name, make in made}

    return resource


def _part(columns: dict[str, Column], part: str | tuple[str, str | Make[R]]) -> tuple[str, Make[R]]:
    if isinstance(part, str):
        column = columns[part]
        name = part.removesuffix("_ms") if column.reads is Reads.MOMENT else part
        return name, _reader(column)
    name, source = part
    return name, _reader(columns[source]) if isinstance(source, str) else source


def _reader(column: Column) -> Callable[[Any], object]:
    value = itemgetter(column.name)
    if column.reads is None:
        return value
    read = _READS[column.reads]
    return lambda row: read(value(row))
