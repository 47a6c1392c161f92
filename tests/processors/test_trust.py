"""The trust processor as a process on a real Kafka."""

import asyncio
import time

import pytest

from schemas.ids import execution_key
from schemas.record import OutRecord, RawRecord
from schemas.trust import TrustCheckpoint, TrustPart, decode, trust_record
from services.domain.trust import KINDS, TrustBook
from services.runtime.kafka_log import KafkaLog
from tests.processors.history import History, histories
from tests.processors.role import Role, newest_parts, produce, read_all, wait_until

pytestmark = pytest.mark.broker


async def produce_all(role: Role, found: list[History], start: int = 0, stop: int | None = None) -> None:
    for history in found:
        records = history.records[start:stop]
        await produce(role.bootstrap_servers, role.topics.executions, history.partition, records)


async def records_of(role: Role) -> list[RawRecord]:
    return await read_all(role.bootstrap_servers, role.topics, role.partitions)


async def until_counted(role: Role, found: list[History], within_s: float = 40.0) -> list[RawRecord]:
    """Wait until the newest checkpoint of every partition reaches the end of its history."""
    deadline = time.monotonic() + within_s
    ends = {history.partition: len(history.records) - 1 for history in found}
    while True:
        raws = await records_of(role)
        if {n: c.through_offset for n, c in newest_checkpoints(raws).items()} == ends:
            return raws
        assert time.monotonic() < deadline, role.log[-4000:]
        await asyncio.sleep(0.1)


def newest_checkpoints(raws: list[RawRecord]) -> dict[int, TrustCheckpoint]:
    found = [decode(raw.value) for raw in raws if raw.value]
    return {record.partition: record for record in found if isinstance(record, TrustCheckpoint)}


def counts_of(parts: dict[bytes, TrustPart]) -> dict[int, dict[tuple[str, str, str], dict[str, int]]]:
    counts: dict[int, dict[tuple[str, str, str], dict[str, int]]] = {}
    for part in parts.values():
        nonzero = {kind: getattr(part, kind) for kind in KINDS if getattr(part, kind)}
        counts.setdefault(part.partition, {})[part.tenant, part.agent, part.tool] = nonzero
    return counts


def expected_of(found: list[History]) -> dict[int, dict[tuple[str, str, str], dict[str, int]]]:
    return {history.partition: {k: dict(v) for k, v in history.expected.items()} for history in found}


async def topic_id_of(role: Role) -> str:
    log = KafkaLog(role.bootstrap_servers, role.topics)
    try:
        return await log.topic_id(role.topics.executions)
    finally:
        await log.close()


async def test_trust_fresh_log_with_zombies_and_poison_counts_what_the_history_says(
    role: Role, seed: int
) -> None:
    found = histories(role.partitions, 300, seed)
    await produce_all(role, found)
    role.start()
    raws = await until_counted(role, found)
    role.wait_ready()
    assert counts_of(newest_parts(raws)) == expected_of(found)
    for history in found:
        checkpoint = newest_checkpoints(raws)[history.partition]
        assert (checkpoint.unreadable, checkpoint.term) == (history.unreadable, history.term)
        assert checkpoint.topic_id == await topic_id_of(role)
    assert role.log.count("skipped a record") == sum(history.unreadable for history in found)
    assert role.stop() == 0


async def test_trust_records_of_the_log_are_on_their_source_partition(role: Role, seed: int) -> None:
    found = histories(role.partitions, 60, seed)
    await produce_all(role, found)
    role.start()
    for raw in await until_counted(role, found):
        assert decode(raw.value).partition == raw.partition
    assert role.stop() == 0


async def test_trust_killed_again_and_again_counts_nothing_twice_and_skips_nothing(
    role: Role, seed: int
) -> None:
    found = histories(role.partitions, 1500, seed)
    cuts = [0, 300, 700, 900, 1500]
    for start, stop in zip(cuts, [*cuts[1:], None], strict=True):
        role.start()
        role.wait_ready()
        seen = len(await records_of(role))
        await produce_all(role, found, start, stop)
        await wait_more(role, seen)
        role.kill()
    role.start()
    raws = await until_counted(role, found)
    assert counts_of(newest_parts(raws)) == expected_of(found)
    assert role.stop() == 0


async def wait_more(role: Role, seen: int) -> None:
    """Wait until the processor wrote something more: it is then in the middle of its work."""
    deadline = time.monotonic() + 40.0
    while len(await records_of(role)) <= seen:
        assert time.monotonic() < deadline, role.log[-4000:]
