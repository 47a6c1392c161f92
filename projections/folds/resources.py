"""Rows as resources of the APIs: each column is read as its table's declaration says."""

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
    """Returns a function that makes the resource of a row.

    Args:
        offer: the row's table or SQL view.
        parts: the fields of the resource, in order: a column under its own name (a moment without `_ms`); a pair of
            another name and a column; or a pair of a name and a function that makes the value from the row.

    Raises:
        KeyError: a part names no column.
    """
    columns = {column.name: column for column in offer.columns}
    named = [_named(columns, part) for part in parts]
    names = [name for name, _ in named]
    # All columns are taken at once; values to be read or made have a placeholder until then.
    taken = [source.name if isinstance(source, Column) else offer.columns[0].name for _, source in named]
    values = itemgetter(*taken)
    reads = [
        (name, _READS[source.reads]) for name, source in named if isinstance(source, Column) and source.reads
    ]
    makes = [(name, source) for name, source in named if not isinstance(source, Column)]

    def resource(row: R) -> dict[str, Any]:
        found = dict(zip(names, values(row), strict=True))
        for name, read in reads:
            found[name] = read(found[name])
        for name, make in makes:
            found[name] = make(row)
        return found

    return resource


def _named(columns: dict[str, Column], part: str | tuple[str, str | Make[R]]) -> tuple[str, Column | Make[R]]:
    """The name of a part, and the column that it is read from or the function that makes it."""
    if isinstance(part, str):
        column = columns[part]
        return (part.removesuffix("_ms") if column.reads is Reads.MOMENT else part), column
    name, source = part
    return name, columns[source] if isinstance(source, str) else source
