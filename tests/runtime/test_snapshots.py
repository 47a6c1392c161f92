"""Snapshots: a writer starts faster with one and rightly without; nobody else's words get into it."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from log.errors import FactsDeleted, LogTruncated, LogUnreachable
from log.memory.log import MemoryLog
from log.places import TopicPartition
from schemas import commands as k
from schemas.record import OutRecord
from schemas.topics import Topics
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.runtime import snapshots
from services.runtime.claim import read_up_to
from services.runtime.executions_partition import ExecutionsPartition
from services.runtime.ledger import Ledger
from services.runtime.snapshots import Snapshots
from tests.runtime.lab import Lab, body_of, types
from tests.runtime.test_writer_fencing import zombie_record


@pytest.fixture(autouse=True)
def _always_worthwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "WORTHWHILE_EVENTS", 1)


def empty() -> tuple[Ledger, ExecutionsPartition]:
    rules = Definitions(policies=PolicySet())
    executions = ExecutionsPartition(lambda: rules)
    return Ledger(executions), executions


async def folded(lab: Lab, tp: TopicPartition, stop: int) -> tuple[Ledger, ExecutionsPartition]:
    ledger, executions = empty()
    await read_up_to(lab.log, tp, ledger, stop)
    return ledger, executions


async def some_history(lab: Lab) -> Any:
    """A started execution with a payment that waits; its hold."""
    running = await lab.start_worker("one")
    await lab.publish_basics()
    await lab.ask("x", k.StartExecution(agent="bot"))
    trace = await lab.ask("x", k.ProposeToolCall(call_id="p", tool="send_money", arguments='{"amount":5}'))
    await running.stop()
    return body_of(trace, "HoldOpened")


async def restart(lab: Lab, name: str) -> None:
    """A writer that claims, reads back, and writes a snapshot."""
    running = await lab.start_worker(name)
    await lab.ask("x", k.ClaimHold(hold_id="none"), lab.rita)
    await running.stop()


async def test_restored_ledger_equals_the_folded_one(lab: Lab) -> None:
    await some_history(lab)
    await restart(lab, "two")
    tp = lab.events_tp("x")
    ledger, executions = empty()

    assert await Snapshots(lab.log, tp).restore(ledger, executions)

    expected, from_log = await folded(lab, tp, ledger.next_offset)
    assert executions.live == from_log.live
    assert ledger.rule == expected.rule
    assert (ledger.now_ms, ledger.commands_through, ledger.last_record_id) == (
        expected.now_ms,
        expected.commands_through,
        expected.last_record_id,
    )


async def test_writer_started_from_a_snapshot_decides_what_waits(lab: Lab) -> None:
    hold = await some_history(lab)
    await restart(lab, "two")
    await lab.start_worker("three")

    trace = await lab.ask(
        "x", k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest), lab.rita
    )

    assert types(trace) == ["DecisionRecorded", "ToolCallReleased"]


async def test_zombies_words_never_get_into_a_snapshot(lab: Lab) -> None:
    await some_history(lab)
    tp = lab.events_tp("x")
    await (await lab.log.appender()).append(
        tp, [zombie_record(lab, "x", -1), zombie_record(lab, "x", 10_000)]
    )

    await restart(lab, "two")
    ledger, executions = empty()
    await Snapshots(lab.log, tp).restore(ledger, executions)

    assert executions.live[lab.key_of("x")].state.lifecycle == "running"


async def test_snapshot_of_a_deposed_writer_is_continued_under_the_term_rule(lab: Lab) -> None:
    """It was right when it claimed; whatever it wrote after the next claim is not read as fact."""
    hold = await some_history(lab)
    tp = lab.events_tp("x")
    _, end = await lab.log.bounds(tp)
    ledger, executions = await folded(lab, tp, end)
    await restart(lab, "two")
    await Snapshots(lab.log, tp).save(ledger, executions, "deposed")
    await (await lab.log.appender()).append(tp, [zombie_record(lab, "x", ledger.rule.claim)])

    await lab.start_worker("three")
    trace = await lab.ask(
        "x", k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest), lab.rita
    )

    assert types(trace) == ["DecisionRecorded", "ToolCallReleased"]


async def test_incomplete_snapshot_is_passed_over(lab: Lab) -> None:
    await some_history(lab)
    await restart(lab, "two")
    tp = lab.events_tp("x")
    store = Snapshots(lab.log, tp)
    for raw in await lab.raws(store.tp):
        if not raw.key.startswith(b"manifest/"):
            await lab.log.send(store.tp, OutRecord(raw.key, raw.value[:-1], ()))
    ledger, executions = empty()

    assert not await store.restore(ledger, executions)
    assert ledger.next_offset == 0


async def test_unreadable_manifest_is_passed_over_for_the_one_before_it(lab: Lab) -> None:
    await some_history(lab)
    tp = lab.events_tp("x")
    store = Snapshots(lab.log, tp)
    await lab.log.send(store.tp, OutRecord(f"manifest/{tp.partition}".encode(), b"{}", ()))
    ledger, executions = empty()

    assert await store.restore(ledger, executions)
    assert lab.key_of("x") in executions.live or ledger.next_offset > 0


@pytest.mark.parametrize(
    ("harm", "error", "said"),
    [
        (
            lambda events: events.delete_before(1),
            FactsDeleted,
            "begins at offset 1, but facts are kept for ever",
        ),
        (lambda events: events.truncate(3), LogTruncated, "truncated or recreated"),
    ],
    ids=["first facts deleted", "shorter"],
)
async def test_log_that_lost_what_its_snapshot_stands_on_stops_the_writer(
    seed: int, harm: Callable[[Any], None], error: type[Exception], said: str
) -> None:
    log = MemoryLog(Topics(), 1, lambda: 1_780_000_000_000)
    lab = Lab(log, 1, random.Random(seed))
    try:
        await some_history(lab)
        await restart(lab, "two")
        harm(log.partition(lab.events_tp("x")))
        ledger, executions = empty()

        with pytest.raises(error, match=said):
            await Snapshots(log, lab.events_tp("x")).restore(ledger, executions)
    finally:
        await lab.close()


async def test_snapshot_of_a_state_that_cannot_be_decoded_is_passed_over(lab: Lab) -> None:
    """Complete, and its hashes fit, but it is no state of this program: it costs time, nothing else."""
    await some_history(lab)
    tp = lab.events_tp("x")
    store = Snapshots(lab.log, tp)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "encode_ledger", lambda ledger, executions: b"another program's state")
        await restart(lab, "two")
    ledger, executions = empty()

    assert not await store.restore(ledger, executions)
    assert ledger.next_offset == 0


async def test_writer_whose_snapshot_cannot_be_written_serves_all_the_same(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = await some_history(lab)

    async def full(self: Snapshots, *state: object) -> None:
        raise LogUnreachable("snapshots", "the disk is full")

    monkeypatch.setattr(Snapshots, "save", full)
    await lab.start_worker("two")
    trace = await lab.ask(
        "x", k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest), lab.rita
    )

    assert types(trace) == ["DecisionRecorded", "ToolCallReleased"]


async def test_snapshot_of_a_process_that_slept_before_its_manifest_replaces_no_newer_one(lab: Lab) -> None:
    await some_history(lab)
    tp, store = lab.events_tp("x"), Snapshots(lab.log, lab.events_tp("x"))
    _, end = await lab.log.bounds(tp)
    old = await folded(lab, tp, end)
    await restart(lab, "two")
    _, end = await lab.log.bounds(tp)
    newer = await store.save(*await folded(lab, tp, end), "newer")

    assert (await store.save(*old, "slept")) == newer
    ledger, executions = empty()
    assert await store.restore(ledger, executions)
    assert ledger.next_offset == newer.next_offset


async def test_restore_takes_the_manifest_that_goes_furthest_though_an_older_one_was_written_last(
    lab: Lab,
) -> None:
    """Between the look and the writing a process may sleep as well."""
    await some_history(lab)
    tp, store = lab.events_tp("x"), Snapshots(lab.log, lab.events_tp("x"))
    _, end = await lab.log.bounds(tp)
    old = await store.save(*await folded(lab, tp, end), "old")
    (manifest,) = [raw for raw in await lab.raws(store.tp) if b'"snapshot_id": "old"' in raw.value]
    await restart(lab, "two")
    _, end = await lab.log.bounds(tp)
    newer = await store.save(*await folded(lab, tp, end), "newer")
    await lab.log.send(store.tp, OutRecord(manifest.key, manifest.value, ()))
    ledger, executions = empty()

    assert await store.restore(ledger, executions)
    assert ledger.next_offset == newer.next_offset > old.next_offset
