"""Whether the log still holds what the views and the audit heads have of it, asked before anything is decided.

Deciders know by `placet.trust` and their snapshots what is missing in the log (`log/completeness`), and may
depend on no view. Where those two were removed, or no trust processor ran, they would decide again what was cut off,
while the projector refuses the same log a moment later. So `placet up` looks at both first, and at where the facts
begin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from host.key_files import KeysUnreadable
from log.errors import LogError
from log.places import TopicPartition
from ops.config import StackConfig
from ops.errors import LogCutError, OpsError
from ops.log_ends import opened_log, topic_bounds
from projections.audit.head_files import HeadsUnusable
from projections.audit.settings import signed_heads
from projections.store.port import ViewError, ViewOutdated
from projections.store.urls import exists, open_view
from schemas.topics import Topics, begins_late

Known = tuple[TopicPartition, int, str]


def check_log_complete(config: StackConfig) -> None:
    """Refuse a log that ends before what the views have read or an audit head was signed for, or that begins late.

    Raises:
        LogCutError: It does.
        OpsError: The log, the views or the heads cannot be read.
    """
    try:
        # Asked for first: where a projector of another host follows the log, both go on meanwhile.
        known = (*_of_views(config), *_of_heads(config))
        ends = asyncio.run(_ends(config))
        for tp, end, who in known:
            if end > ends.get(tp, 0):
                raise LogCutError(
                    f"{tp} ends at offset {ends.get(tp, 0)}, but {who} {end}: it was truncated or recreated. No role "
                    "was started, since what is missing would be decided again. Restore all topics from a backup of "
                    "one moment. Only if an earlier moment was restored on purpose, rebuild the views with "
                    "placet replay --force (docs/operations.md, Restored to an earlier moment)."
                )
    except (LogError, HeadsUnusable, KeysUnreadable, ViewError) as error:
        raise OpsError(str(error)) from error


async def _ends(config: StackConfig) -> dict[TopicPartition, int]:
    topics = Topics(prefix=config.topic_prefix)
    ends = {}
    async with opened_log(config) as log:
        for topic in topics.facts:
            for number, (first, end) in enumerate(await topic_bounds(log, topic)):
                tp = TopicPartition(topic, number)
                if first != 0:
                    raise LogCutError(f"No role was started: {begins_late(str(tp), first)}")
                ends[tp] = end
    return ends


def _of_views(config: StackConfig) -> Iterator[Known]:
    if not exists(config.database_url):
        return
    topics = Topics(prefix=config.topic_prefix)
    try:
        view = open_view(config.database_url)
    except ViewOutdated:
        # Their positions cannot be read by this version, which rebuilds them from the log.
        return
    try:
        for at in view.positions():
            if at.topic in topics.facts:
                yield TopicPartition(at.topic, at.partition), at.next_offset, "the views have read up to"
    finally:
        view.close()


def _of_heads(config: StackConfig) -> Iterator[Known]:
    signed, topics = signed_heads(config.settings_for("install")), Topics(prefix=config.topic_prefix)
    names = {"executions": topics.executions, "definitions": topics.definitions}
    for tenant, head in signed.newest().items():
        who = f"head {head.number} in {signed.files.path(tenant)} was signed up to"
        for tree in head.trees:
            yield TopicPartition(names[tree.topic], tree.partition), tree.last_offset + 1, who
