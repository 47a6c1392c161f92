"""The tables of the views, once for both databases. `docs/views.md` is their description for analysts."""

from collections.abc import Iterator
from typing import Any

from projections.tables import (
    agents,
    analytics,
    answers,
    audit,
    calls,
    conversations,
    definitions,
    events,
    executions,
    holds,
    log,
    probes,
    requests,
    standing_rules,
    star,
)
from projections.tables.columns import Offer, Table, TableOf
from projections.tables.log import POSITIONS

# Databases create the tables in this order: another order would be another layout (`projections.store.layout`).
_DECLARED = (
    executions,
    calls,
    holds,
    events,
    analytics,
    audit,
    answers,
    definitions,
    requests,
    standing_rules,
    agents,
    conversations,
    log,
    star,
    probes,
)


def _offered() -> Iterator[Offer[Any]]:
    for module in _DECLARED:
        yield from (one for one in vars(module).values() if isinstance(one, Offer))


# Every table and SQL view for readers.
OFFERED = tuple(_offered())
TABLES: tuple[Table, ...] = tuple(one for one in OFFERED if isinstance(one, TableOf))
# The tables that a rebuild must reproduce row by row; the positions say up to where. It reproduces only those dead
# letters that the log still holds: their topic is kept for 30 days.
VIEW_TABLES = tuple(table for table in TABLES if table is not POSITIONS)
