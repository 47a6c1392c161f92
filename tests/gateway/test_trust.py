from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from gateway.kafka import trust
from gateway.kafka.trust import TrustTail
from gateway.live.trust import TrustParts
from log.kafka.client import KafkaSettings
from schemas.canonical import canonical
from schemas.record import RawRecord
from schemas.topics import Topics
from schemas.trust import TrustCheckpoint, TrustPart, TrustRecord, trust_record
from tests.conftest import TEST_PARTITIONS
from vitals.log_reach import BEHIND_MAX_S, LogReach


def part(tool: str = "pay", partition: int = 0, topic_id: str = "t", **counts: Any) -> TrustPart:
    return TrustPart(
        tenant="acme",
        project="main",
        agent="bot",
        tool=tool,
        partition=partition,
        last_evidence_at_ms=1_800_000_000_000 + partition,
        through_offset=7,
        record_id="r",
        term=1,
        topic_id=topic_id,
        **counts,
    )


def checkpoint(partition: int = 0, through: int = 9, topic_id: str = "t") -> TrustCheckpoint:
    return TrustCheckpoint(
        partition=partition,
        through_offset=through,
        record_id="r",
        term=1,
        topic_id=topic_id,
        at_ms=1_800_000_000_000,
        evidence=1,
        unreadable=0,
        resume_offset=through + 1,
        resume_term=1,
    )


def raw(record: TrustRecord, value: bytes | None = None) -> RawRecord:
    out = trust_record(record)
    return RawRecord(record.partition, 0, 0, out.key, out.value if value is None else value, out.headers)


def taken(*records: TrustRecord) -> TrustParts:
    parts = TrustParts()
    for record in records:
        parts.take(raw(record))
    return parts


@pytest.mark.parametrize(
    "wrong",
    [
        {"last_evidence_at_ms": 10**15},
        {"last_evidence_at_ms": -(10**15)},
        {"successes": 2**53 - 1},
        {"successes": -1},
    ],
    ids=str,
)
def test_record_of_a_stranger_is_skipped(wrong: dict[str, Any]) -> None:
    parts = taken(checkpoint())
    parts.take(raw(part(), canonical({**part().model_dump(), **wrong}).encode()))

    assert parts.of_agent("acme", "main", "bot") == {}


def test_of_agent_adds_up_the_partitions_by_tool() -> None:
    parts = taken(
        part(successes=2, approvals=1),
        part(partition=1, successes=3, rejections=4),
        part("read", unknowns=1),
        checkpoint(),
        checkpoint(1, through=20),
    )
    found = parts.of_agent("acme", "main", "bot")
    assert found.keys() == {"pay", "read"}
    assert found["pay"] == {
        "successes": 5,
        "failures": 0,
        "unknowns": 0,
        "approvals": 1,
        "edits": 0,
        "rejections": 4,
        "last_evidence_at": "2027-01-15T08:00:00.001Z",
    }
    assert parts.through() == {"0": 9, "1": 20}


def test_of_agent_counts_the_newest_value_of_a_key_once() -> None:
    parts = taken(part(successes=1), part(successes=2), checkpoint())
    assert parts.of_agent("acme", "main", "bot")["pay"]["successes"] == 2


@pytest.mark.parametrize(("tenant", "agent"), [("other", "bot"), ("acme", "other"), ("acme/bot", "")])
def test_of_agent_of_another_tenant_or_name_is_empty(tenant: str, agent: str) -> None:
    assert taken(part(successes=1), checkpoint()).of_agent(tenant, "main", agent) == {}


def test_of_agent_leaves_out_what_speaks_of_another_log() -> None:
    assert taken(part(successes=1, topic_id="gone"), checkpoint()).of_agent("acme", "main", "bot") == {}
    assert taken(part(successes=1)).of_agent("acme", "main", "bot") == {}


def test_take_of_an_empty_value_deletes_its_key() -> None:
    parts = taken(part(successes=1), part("read", successes=1), checkpoint())
    parts.take(raw(part(), b""))
    assert parts.of_agent("acme", "main", "bot").keys() == {"read"}
    parts.take(raw(checkpoint(), b""))
    assert parts.of_agent("acme", "main", "bot") == {}
    assert parts.through() == {}


def test_take_of_a_foreign_record_is_reported_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    parts = taken(part(successes=1), checkpoint())
    parts.take(RawRecord(0, 3, 0, b"acme/bot/pay/0", b"noise", ()))
    assert parts.of_agent("acme", "main", "bot")["pay"]["successes"] == 1
    assert "0@3" in caplog.text


async def _write(kafka: str, topic: str, *records: TrustRecord) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=kafka)
    await producer.start()
    try:
        for record in records:
            out = trust_record(record)
            await producer.send_and_wait(
                topic, out.value, key=out.key, partition=record.partition, headers=list(out.headers)
            )
    finally:
        await producer.stop()


@asynccontextmanager
async def following(kafka: str, topics: Topics, reach: LogReach | None = None) -> AsyncIterator[TrustParts]:
    parts = TrustParts(reach=reach or LogReach())
    tail = TrustTail(KafkaSettings(kafka), topics.trust, topics.executions, TEST_PARTITIONS, parts)
    running = asyncio.create_task(tail.run())
    try:
        yield parts
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _until_complete(parts: TrustParts, *, complete: bool = True) -> None:
    async with asyncio.timeout(20):
        while parts.complete != complete:
            await asyncio.sleep(0.02)


async def _until(parts: TrustParts, successes: int) -> None:
    async with asyncio.timeout(20):
        while parts.of_agent("acme", "main", "bot").get("pay", {}).get("successes") != successes:
            await asyncio.sleep(0.02)


@pytest.mark.broker
async def test_tail_reads_what_stood_there_says_that_it_is_complete_and_goes_on(
    kafka: str, topics: Topics
) -> None:
    await _write(kafka, topics.trust, part(successes=1), checkpoint(), part(partition=3, successes=1))
    await _write(kafka, topics.trust, checkpoint(3))
    async with following(kafka, topics) as parts:
        await _until_complete(parts)
        assert parts.of_agent("acme", "main", "bot")["pay"]["successes"] == 2
        await _write(kafka, topics.trust, part(successes=5))
        await _until(parts, 6)


@pytest.mark.broker
async def test_tail_of_a_topic_that_holds_nothing_is_complete(kafka: str, topics: Topics) -> None:
    async with following(kafka, topics) as parts:
        await _until_complete(parts)
        assert parts.through() == {}


@pytest.mark.broker
async def test_tail_of_a_trust_role_that_is_frozen_says_that_it_is_not_complete_until_it_counts_on(
    kafka: str, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "LOOK_EVERY_S", 0.05)
    now_s = 100.0
    async with following(kafka, topics, LogReach(lambda: now_s)) as parts:
        await _until_complete(parts)
        producer = AIOKafkaProducer(bootstrap_servers=kafka)
        await producer.start()
        try:
            await producer.send_and_wait(topics.executions, b"a report of harm", key=b"k", partition=2)
        finally:
            await producer.stop()
        now_s += BEHIND_MAX_S + 1
        await _until_complete(parts, complete=False)
        await _write(kafka, topics.trust, checkpoint(2, through=0))
        await _until_complete(parts)
