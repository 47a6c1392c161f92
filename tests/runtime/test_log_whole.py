"""A log whose facts are shorter than what was counted of them is refused before anything is decided."""

from typing import Any

import pytest

from schemas.record import OutRecord
from schemas.trust import TrustCheckpoint, TrustPart, trust_record
from services.runtime import log_whole
from services.runtime.log import LogTruncated, TopicPartition
from services.runtime.log_whole import check_whole
from tests.runtime.logs import World

FACT = OutRecord(b"k", b"v", ())


async def checkpoint(world: World, through_offset: int, **more: Any) -> TrustCheckpoint:
    log = world.log
    found: dict[str, Any] = {
        "partition": 0,
        "through_offset": through_offset,
        "record_id": "r",
        "term": 0,
        "topic_id": await log.topic_id(log.topics.executions),
        "at_ms": 1,
        "evidence": 0,
        "unreadable": 0,
        "resume_offset": 0,
        "resume_term": 0,
    }
    return TrustCheckpoint(**{**found, **more})


async def counted(world: World, through_offset: int, **more: Any) -> None:
    record = trust_record(await checkpoint(world, through_offset, **more))
    await world.log.send(TopicPartition(world.log.topics.trust, 0), record)


async def facts(world: World, count: int) -> TopicPartition:
    tp = TopicPartition(world.log.topics.executions, 0)
    for _ in range(count):
        await world.log.send(tp, FACT)
    return tp


async def test_log_that_nobody_has_counted_is_taken(world: World) -> None:
    await facts(world, 2)
    await check_whole(world.log)


async def test_log_that_holds_what_was_counted_is_taken(world: World) -> None:
    await facts(world, 3)
    await counted(world, 1)
    await counted(world, 2)
    await check_whole(world.log)


async def test_facts_that_end_before_what_was_counted_are_refused_with_the_partition(world: World) -> None:
    tp = await facts(world, 2)
    await counted(world, 1)
    await counted(world, 5)
    with pytest.raises(LogTruncated, match=r"Offset 5 of .*holds 0 up to 2: it was truncated") as refused:
        await check_whole(world.log)
    assert refused.value.tp == tp


async def test_partition_that_is_empty_though_it_was_counted_is_refused(world: World) -> None:
    await counted(world, 0)
    with pytest.raises(LogTruncated):
        await check_whole(world.log)


async def test_count_of_another_log_says_nothing(world: World) -> None:
    await counted(world, 5, topic_id="another")
    await check_whole(world.log)


async def test_checkpoint_is_found_behind_many_records(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_whole, "LOOK_BACK", 2)
    await counted(world, 5)
    part = TrustPart(
        tenant="acme",
        agent="a",
        tool="t",
        partition=0,
        last_evidence_at_ms=1,
        through_offset=5,
        record_id="r",
        term=0,
        topic_id="x",
    )
    tp = TopicPartition(world.log.topics.trust, 0)
    for _ in range(6):
        await world.log.send(tp, trust_record(part))
    await world.log.send(tp, OutRecord(b"_log/0", b"no trust", ()))
    with pytest.raises(LogTruncated):
        await check_whole(world.log)
