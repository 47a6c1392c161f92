"""The trust processor as a process on a real Kafka."""

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from host.errors import EXIT_FAILED, EXIT_UNREACHABLE, EXIT_USAGE
from ops.kafka.broker import Broker
from ops.topics import ensure_topics
from schemas.record import OutRecord, RawRecord
from schemas.topics import Topics
from schemas.trust import trust_record
from services.processors.errors import EXIT_STALLED
from tests.processors.counted import (
    check_book,
    counts_of,
    expected_facts,
    expected_of,
    facts_of,
    produce_all,
    records_of,
    topic_id_of,
    until_counted,
)
from tests.processors.gaps import commit_foreign_record, delete_records
from tests.processors.history import History, histories
from tests.processors.role import (
    STRANGER,
    Role,
    newest_checkpoints,
    newest_class_parts,
    newest_parts,
    produce,
)
from tests.servers.brokers import pause, resume

pytestmark = pytest.mark.broker


# Faust's alarm comes after a second of silence, and each of its looks is told.
ALARM_SOON = """
import services.processors.app as app
from faust.transport.consumer import Consumer
made, looked = app.faust_app, Consumer.verify_all_partitions_active
def soon(settings):
    found = made(settings)
    found.conf.stream_processing_timeout = found.conf.broker_commit_livelock_soft_timeout = 1.0
    return found
async def look(consumer):
    await looked(consumer)
    logging.info("looked at all partitions")
app.faust_app, Consumer.verify_all_partitions_active = soon, look
"""

# A fetch that waits long, so that one is under way at each rebalance, and a flow that stands still for a second after
# the recovery has told its consumer where to read: what that fetch brings meanwhile is thrown away.
DEATHS_MOST, OF_A_DEATH = 8, 600
FETCH_OVER_A_REBALANCE = """
import asyncio
from faust.tables.recovery import Recovery
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread as Thread
seek, fetch = Recovery._seek_offsets, Thread._fetch_records
async def seek_and_wait(recovery, *args):
    await seek(recovery, *args)
    await asyncio.sleep(1.0)
async def fetch_long(thread, consumer, active_partitions, timeout=None, max_records=None):
    found = await fetch(thread, consumer, active_partitions, 5.0, max_records)
    if not thread.consumer.flow_active:
        logging.info("dropped what was read of %s", sorted({tp.topic for tp in found}))
    return found
Recovery._seek_offsets, Thread._fetch_records = seek_and_wait, fetch_long
"""


async def test_trust_log_with_zombies_and_poison_counts_what_the_history_says(role: Role, seed: int) -> None:
    found = histories(role.partitions, 300, seed)
    await produce_all(role, found)
    role.start()
    raws = await until_counted(role, found)
    role.wait_ready()
    assert counts_of(newest_parts(raws)) == expected_of(found)
    assert facts_of(newest_class_parts(raws)) == expected_facts(found)
    topic_id = await topic_id_of(role)
    for history in found:
        checkpoint = newest_checkpoints(raws)[history.partition]
        assert (checkpoint.unreadable, checkpoint.term) == (history.unreadable, history.term)
        assert checkpoint.topic_id == topic_id
    assert role.log.count("skipped a record") == sum(history.unreadable for history in found)
    check_book(raws, topic_id)
    assert role.stop() == 0


async def test_partition_that_an_earlier_version_counted_is_counted_again(role: Role, seed: int) -> None:
    found = histories(role.partitions, 200, seed)
    await produce_all(role, found)
    role.start()
    raws = await until_counted(role, found)
    assert role.stop() == 0
    for checkpoint in newest_checkpoints(raws).values():
        earlier = trust_record(checkpoint.model_copy(update={"form": 1, "evidence": 1}))
        await produce(role.bootstrap_servers, role.topics.trust, checkpoint.partition, [earlier])
    role.start()
    role.wait_ready()
    raws = await until_counted(role, found)
    assert role.log.count("was counted by an earlier version") == role.partitions
    assert facts_of(newest_class_parts(raws)) == expected_facts(found)
    check_book(raws, await topic_id_of(role))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"through_offset": 10**6}, "but trust was counted through 1000000"),
        ({"topic_id": "other"}, "on topic other"),
    ],
    ids=["shorter log", "other log"],
)
async def test_count_of_an_earlier_version_that_is_of_another_log_is_kept_as_evidence(
    role: Role, seed: int, changes: dict[str, Any], said: str
) -> None:
    found = histories(role.partitions, 60, seed)
    await produce_all(role, found)
    role.start()
    raws = await until_counted(role, found)
    assert role.stop() == 0
    earlier = newest_checkpoints(raws)[0].model_copy(update={"form": 1, **changes})
    await produce(role.bootstrap_servers, role.topics.trust, 0, [trust_record(earlier)])

    role.start()

    assert role.wait_end() == EXIT_USAGE
    assert said in role.log
    assert newest_checkpoints(await records_of(role))[0] == earlier


async def test_trust_killed_again_and_again_counts_nothing_twice_and_skips_nothing(
    role: Role, seed: int
) -> None:
    found = histories(role.partitions, 2500, seed)
    await produce_all(role, found)
    for _ in range(2):
        seen = len(await records_of(role))
        role.start()
        role.wait_ready()
        await wait_more(role, seen)
        role.kill()
    assert {n: c.through_offset for n, c in newest_checkpoints(await records_of(role)).items()} != {
        history.partition: len(history.records) - 1 for history in found
    }, "it was never killed in the middle: give it more to do"
    role.start()
    raws = await until_counted(role, found)
    assert counts_of(newest_parts(raws)) == expected_of(found)
    for history in found:
        assert newest_checkpoints(raws)[history.partition].unreadable == history.unreadable
    assert role.stop() == 0


async def wait_more(role: Role, seen: int) -> None:
    """Wait until the processor wrote something more: it is then in the middle of its work."""
    deadline = time.monotonic() + 40.0
    while len(await records_of(role)) <= seen:
        assert time.monotonic() < deadline, role.log[-4000:]


async def test_trust_partitions_shared_with_another_worker_that_dies_stay_exact(
    role: Role, tmp_path: Path, seed: int
) -> None:
    found = histories(role.partitions, 600, seed)
    with another_worker(role, tmp_path) as other:
        await die_beside(role, other, found)
        raws = await until_counted(other, found)
        assert counts_of(newest_parts(raws)) == expected_of(found)
        assert other.stop() == 0


async def test_trust_records_dropped_after_the_seek_of_a_recovery_are_read_again(
    role: Role, tmp_path: Path, seed: int
) -> None:
    found = histories(role.partitions, DEATHS_MOST * OF_A_DEATH, seed)
    with another_worker(role, tmp_path, FETCH_OVER_A_REBALANCE) as other:
        for death in range(DEATHS_MOST):
            # Whether a fetch is under way over a rebalance is up to both.
            end = (death + 1) * OF_A_DEATH
            await die_beside(role, other, found, death * OF_A_DEATH, end)
            # Until the other one has taken over, nobody knows what its recovery has read.
            await until_counted(other, found, stop=end)
            if has_dropped(role, other):
                break
        await produce_all(role, found, end)
        raws = await until_counted(other, found)
        assert counts_of(newest_parts(raws)) == expected_of(found)
        assert has_dropped(role, other), "no recovery lost a record: nothing was tried"


def has_dropped(role: Role, other: Role) -> bool:
    """Whether what a recovery read of the trust topic was dropped."""
    dropped = [line for line in other.log.splitlines() if "dropped what was read of" in line]
    return any(role.topics.trust in line for line in dropped)


@contextmanager
def another_worker(role: Role, tmp_path: Path, prelude: str = "") -> Iterator[Role]:
    other = Role(role.bootstrap_servers, role.topics, role.partitions, tmp_path / "other", "other")
    other.prelude = prelude
    try:
        yield other
    finally:
        other.end()


async def die_beside(
    role: Role, other: Role, found: list[History], begin: int = 0, end: int | None = None
) -> None:
    """Two workers share the partitions, and the first one is killed while it counts."""
    role.start()
    role.wait_ready()
    await produce_all(role, found, begin, begin + 200)
    if not begin:
        other.start()
    other.wait_ready()
    await produce_all(role, found, begin + 200, begin + 400)
    await wait_more(role, 0)
    role.kill()
    await produce_all(role, found, begin + 400, end)


async def test_trust_part_overwritten_by_a_late_writer_is_noticed_and_counted_again(
    role: Role, seed: int
) -> None:
    found = histories(role.partitions, 200, seed)
    await produce_all(role, found)
    role.start()
    raws = await until_counted(role, found)
    assert role.stop() == 0
    grown = next(part for part in newest_parts(raws) if part.successes > 1)
    late = {"successes": grown.successes - 1, "through_offset": grown.through_offset - 1}
    stale = grown.model_copy(update=late)
    garbage = OutRecord(STRANGER, b"not ours", ())
    await produce(role.bootstrap_servers, role.topics.trust, stale.partition, [trust_record(stale), garbage])
    role.start()
    assert role.wait_end() == EXIT_FAILED
    assert "counted again from its first record" in role.log
    assert "skipped a record of the trust topic under b'stranger'" in role.log
    role.start()
    raws = await until_counted(role, found)
    assert counts_of(newest_parts(raws)) == expected_of(found)


async def test_trust_log_recreated_stops_with_a_sentence_and_counts_nothing(role: Role, seed: int) -> None:
    found = histories(role.partitions, 60, seed)
    await produce_all(role, found)
    role.start()
    await until_counted(role, found)
    assert role.stop() == 0
    await recreate(role, role.topics.executions)
    await produce_all(role, histories(role.partitions, 200, seed + 1))
    before = len(await records_of(role))
    role.start()
    assert role.wait_end() == EXIT_USAGE
    assert "recreate the trust topic as well" in role.log
    assert len(await records_of(role)) == before


async def recreate(role: Role, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=role.bootstrap_servers)
    await admin.start()
    try:
        old = await topic_id_of(role)
        await admin.delete_topics([topic])
        deadline = time.monotonic() + 20.0
        while topic in await admin.list_topics():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
    finally:
        await admin.close()
    await ensure_topics(role.bootstrap_servers, topics=role.topics, partitions=role.partitions)
    assert await topic_id_of(role) != old


async def test_trust_broker_that_hangs_ends_it_by_the_watchdog_and_the_next_start_catches_up(
    broker: Broker, topic_prefix: str, tmp_path: Path, seed: int
) -> None:
    topics = Topics(topic_prefix)
    await ensure_topics(broker.bootstrap_servers, topics=topics, partitions=1)
    role = Role(broker.bootstrap_servers, topics, 1, tmp_path, stall_after_s=8.0)
    found = histories(1, 400, seed)
    try:
        role.start()
        role.wait_ready()
        await produce_all(role, found, 0, 200)
        pause(broker)
        assert role.wait_end() == EXIT_STALLED
        assert "No progress on " in role.log
        resume(broker)
        await produce_all(role, found, 200)
        role.start()
        raws = await until_counted(role, found)
        assert counts_of(newest_parts(raws)) == expected_of(found)
    finally:
        role.end()


async def test_trust_that_works_says_nothing_of_streams_that_stand_still(role: Role, seed: int) -> None:
    role.prelude = ALARM_SOON
    found = histories(role.partitions, 300, seed)
    await produce_all(role, found)
    role.start()
    await until_counted(role, found)
    counted = role.log.count("looked at all partitions")
    deadline = time.monotonic() + 60
    while role.log.count("looked at all partitions") < counted + 3:
        assert time.monotonic() < deadline, role.log[-4000:]
        await asyncio.sleep(0.1)
    assert "There are multiple possible explanations" not in role.log


async def test_trust_topics_missing_end_it_with_a_sentence(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    role = Role(kafka, Topics(topic_prefix), 3, tmp_path)
    role.start()
    assert role.wait_end() == EXIT_UNREACHABLE
    assert f"The topic {topic_prefix}.executions or one of its partitions does not exist" in role.log


async def test_trust_other_partition_count_ends_it_with_a_sentence(role: Role) -> None:
    role.partitions = 4
    role.start()
    assert role.wait_end() == EXIT_USAGE
    assert "has 3 partitions and 4 were asked for" in role.log


async def test_trust_kafka_away_ends_it_with_a_sentence(tmp_path: Path) -> None:
    role = Role("127.0.0.1:1", Topics("nobody"), 3, tmp_path)
    role.start()
    assert role.wait_end() == EXIT_UNREACHABLE
    assert "Kafka does not answer at 127.0.0.1:1" in role.log


async def test_trust_frozen_past_its_session_writes_nothing_more_and_ends(role: Role) -> None:
    role.start()
    role.wait_ready()
    role.freeze(role.session_timeout_s + 2.0)
    assert role.wait_end() == EXIT_FAILED
    assert "it starts again as a new member" in role.log


async def test_trust_gap_left_by_a_foreign_transaction_is_passed_and_deleted_records_are_not(
    role: Role, seed: int
) -> None:
    history = History(0, random.Random(seed))
    history.claim()
    call = history.propose()
    await produce_all(role, [history])
    written = len(history.records)
    await commit_foreign_record(role)
    role.start()
    role.wait_ready()
    history.end(call, "successes")
    await produce_all(role, [history], written)
    raws = await until_through(role, 0, written + 2)
    assert counts_of(newest_parts(raws)) == expected_of([history])
    assert role.stop() == 0

    await delete_records(role, 0, written + 3)
    await produce_all(role, [history], written)
    role.start()
    assert role.wait_end() == EXIT_USAGE
    assert f"begins at offset {written + 3}, but facts are kept for ever" in role.log


async def until_through(role: Role, partition: int, offset: int) -> list[RawRecord]:
    deadline = time.monotonic() + 40.0
    while True:
        raws = await records_of(role)
        found = newest_checkpoints(raws).get(partition)
        if found is not None and found.through_offset == offset:
            return raws
        assert time.monotonic() < deadline, role.log[-4000:]
        await asyncio.sleep(0.1)
