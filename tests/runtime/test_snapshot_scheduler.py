"""Snapshots beside writers that live for long: taken in time, from the log alone, by a process of their own."""

import random
from typing import Any

import pytest

from log.memory.log import MemoryLog
from log.places import TopicPartition
from schemas import commands as k
from schemas.topics import Topics
from services.runtime.snapshot_once import take_snapshot
from services.runtime.snapshot_scheduler import SnapshotFailed, SnapshotScheduler, take_in_process
from services.runtime.snapshots import Snapshots
from tests.log.logs import PARTITIONS, KafkaWorld
from tests.runtime.lab import Lab, types
from tests.runtime.test_snapshots import empty, folded, some_history
from tests.runtime.test_writer_fencing import zombie_record


class Partitions:
    """What a worker writes, and the snapshots that were asked for."""

    def __init__(self, **ends: int) -> None:
        self.ends = {int(name.removeprefix("p")): end for name, end in ends.items()}
        self.taken: list[int] = []
        self.failing = False
        self.scheduler = SnapshotScheduler(lambda: dict(self.ends), self.take, every_events=100)

    async def take(self, partition: int) -> int:
        self.taken.append(partition)
        if self.failing:
            raise SnapshotFailed("the disk is full")
        return self.ends[partition]


async def test_look_takes_a_snapshot_of_whatever_has_grown_enough_and_of_nothing_else() -> None:
    at = Partitions(p0=5_000, p1=0)
    await at.scheduler.look()
    assert at.taken == []

    at.ends = {0: 5_099, 1: 100}
    await at.scheduler.look()
    assert at.taken == [1]

    at.ends = {0: 5_100, 1: 199}
    await at.scheduler.look()
    assert at.taken == [1, 0]


async def test_look_after_a_failure_tries_again_once_as_much_has_come_again() -> None:
    at = Partitions(p0=0)
    await at.scheduler.look()
    at.failing, at.ends = True, {0: 150}
    await at.scheduler.look()
    at.ends = {0: 249}
    await at.scheduler.look()
    assert at.taken == [0]

    at.failing, at.ends = False, {0: 250}
    await at.scheduler.look()
    assert at.taken == [0, 0]


async def test_look_counts_anew_where_a_partition_went_away_and_came_back() -> None:
    at = Partitions(p0=0)
    await at.scheduler.look()
    at.ends = {}
    await at.scheduler.look()
    at.ends = {0: 1_000}
    await at.scheduler.look()
    assert at.taken == []


async def test_snapshot_taken_beside_a_writer_is_what_the_log_says_and_the_next_starts_from_it(
    lab: Lab,
) -> None:
    hold = await some_history(lab)
    writing = await lab.start_worker("two")
    await lab.ask("x", k.ClaimHold(hold_id=hold.hold_id), lab.rita)
    tp = lab.events_tp("x")
    # A zombie's last word, at the very end of what is read.
    await (await lab.log.appender()).append(tp, [zombie_record(lab, "x", -1)])

    manifest = await take_snapshot(lab.log, tp.partition, "beside")

    _, end = await lab.log.bounds(tp)
    assert manifest.next_offset == end
    ledger, executions = empty()
    assert await Snapshots(lab.log, tp).restore(ledger, executions)
    expected, from_log = await folded(lab, tp, end)
    assert executions.live == from_log.live
    assert (ledger.rule, ledger.last_record_id, ledger.last_offset, ledger.next_offset) == (
        expected.rule,
        expected.last_record_id,
        expected.last_offset,
        expected.next_offset,
    )
    await writing.stop()
    await lab.start_worker("three")
    trace = await lab.ask(
        "x", k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest), lab.rita
    )
    assert types(trace) == ["DecisionRecorded", "ToolCallReleased"]


async def test_next_snapshot_reads_only_what_came_after_the_last(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(MemoryLog(Topics(), 1, lambda: 1_780_000_000_000), 1, random.Random(seed))
    try:
        await some_history(lab)
        tp = lab.events_tp("x")
        first = await take_snapshot(lab.log, 0, "first")
        read_from: list[int] = []
        read = lab.log.read

        def watched(wanted: TopicPartition, start: int, stop: int) -> Any:
            if wanted == tp:
                read_from.append(start)
            return read(wanted, start, stop)

        monkeypatch.setattr(lab.log, "read", watched)
        second = await take_snapshot(lab.log, 0, "second")
        assert second.next_offset >= first.next_offset
        assert min(read_from) == first.last_offset
    finally:
        await lab.close()


@pytest.mark.broker
async def test_snapshot_in_a_process_of_its_own_says_how_far_it_goes(
    kafka_log_world: KafkaWorld, seed: int
) -> None:
    lab = Lab(kafka_log_world.log, PARTITIONS, random.Random(seed))
    try:
        await some_history(lab)
        tp = lab.events_tp("x")
        settings = {
            "bootstrap_servers": kafka_log_world.bootstrap_servers,
            "topic_prefix": lab.log.topics.executions.removesuffix(".executions"),
            "log_signatures": "off",
        }

        next_offset = await take_in_process(settings, tp.partition)

        assert next_offset == (await lab.log.bounds(tp))[1]
        ledger, executions = empty()
        assert await Snapshots(lab.log, tp).restore(ledger, executions)
        assert ledger.next_offset == next_offset
    finally:
        await lab.close()


async def test_snapshot_process_that_cannot_reach_kafka_says_so_in_one_sentence(unused_tcp_port: int) -> None:
    settings = {"bootstrap_servers": f"127.0.0.1:{unused_tcp_port}", "topic_prefix": "placet"}
    settings["log_signatures"] = "off"
    with pytest.raises(SnapshotFailed, match="Kafka"):
        await take_in_process(settings, 0)
