"""Waiting until the projector has written everything that is in the log."""

from __future__ import annotations

import asyncio
from contextlib import closing

from log.kafka.client import KafkaSettings
from log.kafka.follower import BULK, Follower, opened
from ops.bench.site import Site
from projections.store.port import ViewStore
from projections.store.urls import open_view
from schemas.topics import Topics

WITHIN_S = 900.0
POLL_S = 0.05


async def until_projected(site: Site) -> None:
    """Return once the view stands at the log's end.

    Raises:
        TimeoutError: it did not get there.
    """
    async with opened(KafkaSettings(site.bootstrap_servers, site.security), BULK) as tail:
        with closing(open_view(site.database_url)) as view:
            await _until_read(tail, view, Topics(site.topic_prefix))


async def _until_read(tail: Follower, view: ViewStore, topics: Topics) -> None:
    partitions = await tail.partitions(topics.executions)
    async with asyncio.timeout(WITHIN_S):
        while True:
            ends = {at: bounds.end for at, bounds in (await tail.bounds(partitions)).items()}
            stands = {at.tp: at.next_offset for at in view.positions()}
            if all(stands.get(at, 0) >= end for at, end in ends.items()):
                return
            await asyncio.sleep(POLL_S)
