"""In which turn a writer takes commands: each case was found by the simulation."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from log.errors import LogUnreachable
from log.memory.log import MemoryLog
from log.places import TopicPartition
from schemas import commands as k
from schemas.events.holds import HoldCancelled
from schemas.events.log import WriterClaimed
from schemas.headers import event_record
from schemas.limits import CLOCK_LEAD_MAX_MS
from schemas.record import Event, EventMeta, OutRecord
from schemas.topics import MAX_MESSAGE_BYTES, Topics
from services.domain.definitions import Definitions
from services.domain.execution.deadlines import due_id_of_call
from services.domain.policy import PolicySet
from services.runtime.claim import log_key
from services.runtime.definitions_book import Adoption, DefinitionsBook
from services.runtime.writer import PartitionWriter
from tests.domain.world import BOT, OLGA, World, the
from tests.runtime.lab import Lab, types

START_MS = 1_780_000_000_000


@pytest.fixture
async def lab(seed: int) -> AsyncIterator[Lab]:
    lab = Lab(MemoryLog(Topics(), 1, lambda: START_MS), 1, random.Random(seed))
    try:
        yield lab
    finally:
        await lab.close()


async def test_commands_handed_over_before_the_writer_asked_for_them_are_not_taken_out_of_turn(
    lab: Lab,
) -> None:
    """A writer that replaces a failed one is offered what the feed delivers next, while it still claims."""
    names = [await lab.send("x", k.StartExecution(agent="bot"))]
    names += [await lab.send("x", k.ClaimHold(hold_id=f"h{i}"), lab.rita) for i in range(5)]
    newest = (await lab.raws(lab.commands_tp("x")))[-1:]
    running = await lab.start_worker("w")
    build = running.worker.build

    def offered_early(tp: TopicPartition, *others: Any) -> Any:
        writer = build(tp, *others)
        if tp == lab.commands_tp("x"):
            writer.offer(newest)
        return writer

    running.worker.build = offered_early
    for name in names:
        await lab.trace("x", name)

    decided = [
        e.meta.command_offset for e in await lab.facts(lab.events_tp("x")) if e.meta.command_offset >= 0
    ]
    assert decided == sorted(decided)


async def test_adoption_names_the_record_of_the_newest_definition(lab: Lab) -> None:
    """Not whatever counts after it, such as another writer's claim: a reader checks the id at that offset."""
    first = await lab.start_worker("one")
    await lab.publish_tool({"name": "ping"})
    await first.stop()
    tp = TopicPartition(lab.log.topics.definitions, 0)
    facts = await lab.facts(tp)
    body = WriterClaimed(claim_id="rival", after=facts[-1].meta.term, worker="rival")
    meta = EventMeta("rival", START_MS, facts[-1].meta.term, 0, "rival", "", "")
    await (await lab.log.appender()).append(tp, [event_record(body, meta, log_key(0))])
    book = DefinitionsBook(lab.log, Definitions(policies=PolicySet()))
    await book.load()

    adopted = Adoption(book).pending(-1)

    assert adopted is not None
    assert facts[-1].type == "ToolPublished"
    assert (adopted.through_offset, adopted.through_record_id, adopted.through_term) == (
        facts[-1].offset,
        facts[-1].meta.event_id,
        facts[-1].meta.term,
    )


async def test_deadline_of_before_the_restart_is_kept_by_a_writer_whose_clock_is_behind(
    seed: int,
) -> None:
    """Nothing arrives that would tell it the time, so it asks the log by a nudge."""
    now = [START_MS]
    lab = Lab(MemoryLog(Topics(), 1, lambda: now[0]), 1, random.Random(seed))
    lab.local_ms = lambda: now[0] - CLOCK_LEAD_MAX_MS
    try:
        first = await lab.start_worker("one")
        await lab.publish_basics()
        await lab.ask("x", k.StartExecution(agent="bot"))
        await lab.ask("x", k.ProposeToolCall(call_id="pay", tool="send_money", arguments='{"amount":5}'))
        await first.stop()
        now[0] += 30 * 60_000
        await lab.start_worker("two")
        async with asyncio.timeout(20):
            while "HoldExpired" not in types(await lab.facts(lab.events_tp("x"))):
                await asyncio.sleep(0.01)
    finally:
        await lab.close()


def test_release_in_an_execution_that_had_ended_still_expires() -> None:
    """Logs have it: a call of unknown outcome let run again, and between the two events nothing was open."""
    world = World()
    world.ask(k.StartExecution(agent="bot"))
    released = the(world.ask(k.ProposeToolCall(call_id="c", tool="read", arguments="{}")), "ToolCallReleased")
    world.ask(k.ConsumeGrant(call_id="c", digest=released.digest, attempt_id="a"))
    hold = the(
        world.ask(k.ReportResult(call_id="c", attempt_id="a", outcome="unknown")),
        "HoldOpened",
    )
    world.ask(k.CompleteExecution())

    for body in (HoldCancelled(hold_id=hold.hold_id, reason="decided"), released):
        meta = EventMeta("e", world.now_ms, 0, 99, "approve", "", "acme", 0)
        world.partition.apply(Event(body, meta, b"acme/main/x", 0, 99))
    due = world.partition.due_of(b"acme/main/x")

    assert due == (released.expires_at_ms, due_id_of_call("c"))
    world.later(3600)
    world.ask(k.ExpireDue(subject_id=due[1], deadline_at_ms=due[0], attempt=1), BOT)
    assert world.state().calls["c"].status == "expired"
    assert world.partition.due_of(b"acme/main/x") is None


def test_resumed_calls_are_judged_in_the_order_of_their_ids() -> None:
    world = World()
    world.ask(k.StartExecution(agent="bot"))
    world.ask(k.PauseExecution(), OLGA)
    for call_id in ("c9", "c1", "c5", "c3", "c7"):
        world.ask(k.ProposeToolCall(call_id=call_id, tool="read", arguments="{}"))

    said: list[Any] = world.ask(k.ResumeExecution(), OLGA)

    judged = [event.call_id for event in said if hasattr(event, "effect")]
    assert judged == ["c1", "c3", "c5", "c7", "c9"]


async def test_foreign_record_as_large_as_a_topic_takes_is_a_dead_letter_without_its_content(
    lab: Lab,
) -> None:
    """Beside its reason it would not fit, and no partition may stand still for that."""
    await lab.start_worker("one")
    await lab.ask("x", k.StartExecution(agent="bot"))
    room = OutRecord(b"k", b"", ()).size_bytes()
    large = OutRecord(b"k", b"\0" * (MAX_MESSAGE_BYTES - room), ())
    at = await lab.log.send(lab.commands_tp("x"), large)

    assert types(await lab.ask("x", k.PauseExecution(), OLGA)) == ["ExecutionPaused"]
    (letter,) = await lab.raws(TopicPartition(lab.log.topics.dead_letters, 0))
    headers = dict(letter.headers)
    assert (letter.value, headers["placet_offset"]) == (b"", b"%d" % at)
    assert len(headers["placet_left_out_sha256"]) == 64


async def test_worker_that_cannot_open_a_connection_tries_again(lab: Lab) -> None:
    """A broker that is away for a moment ends no decider: the appender is asked for until there is one."""
    refused = 3
    open_appender = lab.log.appender

    async def appender() -> Any:
        nonlocal refused
        if refused:
            refused -= 1
            raise LogUnreachable("memory", "the broker restarts")
        return await open_appender()

    lab.log.appender = appender  # type: ignore[method-assign]
    running = await lab.start_worker("one")

    assert types(await lab.ask("x", k.StartExecution(agent="bot"))) == ["ExecutionStarted"]
    assert refused == 0
    assert not running.tasks[0].done()


async def test_deadline_is_nudged_though_commands_never_stop(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deciding is not all: a quiet execution's hold expires while another keeps the writer busy."""
    now = [START_MS]
    lab = Lab(MemoryLog(Topics(), 1, lambda: now[0]), 1, random.Random(seed), local_ms=lambda: now[0])
    try:
        running = await lab.start_worker("one")
        await lab.publish_basics()
        await lab.ask("x", k.StartExecution(agent="bot"))
        await lab.ask("x", k.ProposeToolCall(call_id="pay", tool="send_money", arguments='{"amount":5}'))
        await lab.ask("busy", k.StartExecution(agent="bot"))
        (slot,) = [s for s in running.worker._slots.values() if s.tp == lab.commands_tp("busy")]
        writer = slot.writer
        assert writer is not None
        again = next(raw for raw in reversed(await lab.raws(lab.commands_tp("busy"))))
        drain = writer._drain

        def never_empty() -> Any:
            yield from drain()
            writer._inbox.append(again)

        async def a_moment() -> None:
            await asyncio.sleep(0.01)

        monkeypatch.setattr(PartitionWriter, "_drain", lambda self: never_empty())
        monkeypatch.setattr(PartitionWriter, "_wait", lambda self: a_moment())
        now[0] += 3_600_000
        writer.offer([again])
        async with asyncio.timeout(20):
            while "HoldExpired" not in types(await lab.facts(lab.events_tp("x"))):
                await asyncio.sleep(0.05)
    finally:
        await lab.close()
