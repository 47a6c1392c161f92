"""Lists and figures while the views are built anew: a part of them is not given for all there is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.problems import Problem
from gateway.views import GatewayViews
from projections.queries.views import open_views
from projections.store.urls import open_view
from projections.tables.executions import EXECUTIONS
from schemas.refusals import Refusal
from tests.projections.filling import TOPICS, Filler
from tests.projections.folding import KEY
from tests.projections.histories import LogBuilder, started


def _remove(directory: Path) -> None:
    for one in directory.glob("views.db*"):
        one.unlink()


async def test_views_that_are_built_anew_are_refused_until_they_have_read_as_far_as_before(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'views.db'}"
    log = LogBuilder(1).claim_all()
    log.append(KEY, [started()])
    store = open_view(url)
    Filler(store).fill(log)
    store.close()
    views = GatewayViews(open_views(url, TOPICS), TOPICS)
    count = await views.read_whole(lambda now: len(list(now.select(EXECUTIONS, ""))))
    assert count[0] == 1
    views.views.close()

    await asyncio.to_thread(_remove, tmp_path)
    store = open_view(url)
    again = GatewayViews(open_views(url, TOPICS), TOPICS, views.seen)
    with pytest.raises(Problem, match="built anew") as refused:
        await again.read_whole(lambda now: len(list(now.select(EXECUTIONS, ""))))
    assert refused.value.code is Refusal.UNAVAILABLE
    # What says by its positions how much it knows may still be asked for.
    assert (await again.read(lambda now: len(list(now.select(EXECUTIONS, "")))))[0] == 0

    Filler(store).fill(log)
    store.close()
    assert (await again.read_whole(lambda now: len(list(now.select(EXECUTIONS, "")))))[0] == 1
    again.views.close()
