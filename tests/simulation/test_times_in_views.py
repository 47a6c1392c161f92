"""The views of whole worlds: no time in them is 0, or before what it follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from projections.folds.rows import Row
from projections.store.comments import is_moment
from projections.store.tables import TABLES
from projections.store.urls import open_view
from projections.tables.log import ADOPTIONS
from schemas.headers import read_event
from schemas.topics import Topics
from tests.projections.filling import Filler
from tests.projections.histories import LogBuilder
from tests.simulation.world import START_MS, Outcome, run_world

TOPICS = Topics()
# What a row's first moment is called, and what can only be later.
BEGINS = ("proposed_at_ms", "opened_at_ms", "started_at_ms", "made_at_ms")


def log_of(outcome: Outcome, topic: str) -> LogBuilder:
    of_topic = {tp.partition: list(raws) for tp, raws in outcome.records.items() if tp.topic == topic}
    log = LogBuilder(len(of_topic))
    log.records = [of_topic[number] for number in range(len(of_topic))]
    return log


def too_early(tables: Mapping[str, list[Row]]) -> Iterator[str]:
    """The moments that are before the world's first, or before the one that their row begins with."""
    for table, rows in tables.items():
        for row in rows:
            moments = {name: at for name, at in row.items() if is_moment(name) and at is not None}
            begin_ms = max([START_MS, *(moments[name] for name in BEGINS if name in moments)])
            yield from (f"{table}.{name}: {row}" for name, at in moments.items() if at < begin_ms)


# Worlds where nobody moves the broker's clock.
@pytest.mark.parametrize("seed", [2, 4, 16])
def test_no_time_in_the_views_is_before_what_it_follows(seed: int, tmp_path: Path) -> None:
    outcome = run_world(seed)
    assert outcome.happened["clock_moved"] == 0
    definitions = log_of(outcome, TOPICS.definitions)
    store = open_view(f"sqlite:///{tmp_path / 'views.db'}")
    try:
        filler = Filler(store)
        filler.fill(log_of(outcome, TOPICS.executions), definitions)
        shown = {table.name: filler.rows(table) for table in TABLES}
    finally:
        store.close()

    assert list(too_early(shown)) == []
    published = {raw.offset: read_event(raw).meta.at_ms for raw in definitions.records[0]}
    assert [row for row in shown[ADOPTIONS.name] if row["at_ms"] < published[row["through_offset"]]] == []
