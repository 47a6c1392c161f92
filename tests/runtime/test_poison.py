"""Commands that writers die of, and commands beside which they only happened to die."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from log.errors import AppendFailed
from log.memory.log import MemoryLog
from log.places import TopicPartition
from log.port import Appender
from schemas import commands as k
from schemas.envelope import Draft, Signer, Verifier
from schemas.events.log import WriterAlive, WriterClaimed
from schemas.headers import event_record
from schemas.ids import derived_id
from schemas.message import Message
from schemas.record import Event, EventMeta, OutRecord, RawRecord
from schemas.topics import Topics
from services.runtime import worker
from services.runtime.claim import log_key
from services.runtime.ledger import SPARED_MAX, Ledger
from services.runtime.rounds import ABANDON_AFTER_DEATHS, BURY_AFTER_DEATHS, Round, Rounds
from services.runtime.worker import Worker
from services.runtime.writer import CAREFUL_AFTER_CLAIMS, PartitionWriter
from tests.domain.world import World as DomainWorld
from tests.runtime.lab import Lab, body_of, types

START_MS = 1_780_000_000_000
# Who ends of a command before anybody is careful, where there was no progress before.
IN_A_BATCH = CAREFUL_AFTER_CLAIMS - 1


async def dead_writers(lab: Lab, attempting: int, deaths: int, execution_id: str = "x") -> None:
    """What writers leave that died one after the other, each when it tried the same command alone."""
    tp = lab.events_tp(execution_id)
    appender = await lab.log.appender()
    term = max([e.offset for e in await lab.facts(tp) if e.type == "WriterClaimed"], default=-1)
    for number in range(deaths):
        claim = WriterClaimed(claim_id=derived_id("dead", term), after=term, worker=f"dead-{number}")
        term = await appender.append(tp, [log_record(tp, claim, term)])
        alive = WriterAlive(commands_through=attempting - 1, attempting=attempting)
        await appender.append(tp, [log_record(tp, alive, term)])


def log_record(tp: TopicPartition, body: Message, term: int) -> OutRecord:
    name = derived_id(type(body).__name__, term)
    return event_record(body, EventMeta(name, 0, term, 0, name, "", ""), log_key(tp.partition))


def deadly(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let every writer die that decides what says poison; the terms in which one did."""
    decide_one, deaths = Rounds.decide_one, list[int]()

    def dies(self: Rounds, round_: Round, raw: RawRecord) -> None:
        if b"poison" in raw.value:
            deaths.append(self.ledger.rule.claim)
            raise RuntimeError("this command kills its writer")
        decide_one(self, round_, raw)

    monkeypatch.setattr(Rounds, "decide_one", dies)
    return deaths


async def test_poison_command_between_others_is_abandoned_after_four_deaths(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One dies of it in a batch, three alone with it; the next one gives it up and goes on."""
    await lab.start_worker("zero")
    await lab.ask("x", k.StartExecution(agent="bot"))
    await lab.workers[0].stop()
    deaths = deadly(monkeypatch)
    before = await lab.send("x", k.PauseExecution(reason="before"), lab.olga)
    poison = await lab.send("x", k.PauseExecution(reason="poison"), lab.olga)
    after = await lab.send("x", k.ResumeExecution(), lab.olga)
    await lab.start_worker("one")

    assert types(await lab.trace("x", before)) == ["ExecutionPaused"]
    assert body_of(await lab.trace("x", poison), "CommandAbandoned").attempts == ABANDON_AFTER_DEATHS
    assert types(await lab.trace("x", after)) == ["ExecutionResumed"]
    assert len(deaths) == len(set(deaths)) == IN_A_BATCH + ABANDON_AFTER_DEATHS, (
        "each under a claim of its own"
    )


async def test_poison_command_with_workers_that_take_turns_is_abandoned_after_as_many_deaths(
    memory_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each worker is killed by it for good, as by a signal: what one knew of it, the next knows from the log."""
    lab = memory_lab
    deaths = deadly(monkeypatch)
    monkeypatch.setattr(Worker, "_back_off", forever)
    monkeypatch.setattr(worker, "BACKOFF_MAX_S", 0.01)
    poison = await lab.send("x", k.StartExecution(agent="poison"))

    for number in range(IN_A_BATCH + ABANDON_AFTER_DEATHS):
        running = await lab.start_worker(f"w{number}")
        async with asyncio.timeout(20):
            while len(deaths) <= number:
                await asyncio.sleep(0.01)
        await running.kill()
    await lab.start_worker("last")

    assert types(await lab.trace("x", poison)) == ["CommandAbandoned"]
    assert len(deaths) == IN_A_BATCH + ABANDON_AFTER_DEATHS


def deadly_to_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let a poisonous command end whoever reads it, also to give it up; returns the offsets that were read."""
    read, reads = Verifier.read, list[int]()

    def dies(self: Verifier, raw: RawRecord) -> Any:
        if b"poison" in raw.value:
            reads.append(raw.offset)
            raise SystemError("not even an exception that somebody catches")
        return read(self, raw)

    monkeypatch.setattr(Verifier, "read", dies)
    monkeypatch.setattr(Rounds, "_abandon", lambda self, round_, raw, *counts: dies(self.verifier, raw))
    return reads


async def forever(self: Worker, failures: int) -> None:
    await asyncio.Event().wait()


async def test_poison_that_kills_whoever_reads_it_goes_to_the_dead_letters_unread(
    memory_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Giving a command up needs its key: so a writer may die of that, too, but not for ever."""
    lab, reads = memory_lab, deadly_to_read(monkeypatch)
    await lab.send("x", k.StartExecution(agent="poison"))
    after = await lab.send("y", k.StartExecution(agent="bot"))
    await lab.start_worker("one")

    assert types(await lab.trace("y", after)) == ["ExecutionStarted"]
    (letter,) = await lab.raws(TopicPartition(lab.log.topics.dead_letters, 0))
    assert dict(letter.headers)["placet_reason"] == b"abandoned"
    assert len(reads) == IN_A_BATCH + BURY_AFTER_DEATHS


@dataclass
class Losing:
    """An appender that loses what it is told to lose; its writer cannot know whether it landed."""

    inner: Appender
    loses: Callable[[Sequence[OutRecord]], bool]

    async def append(self, tp: TopicPartition, records: Sequence[OutRecord]) -> int:
        if self.loses(records):
            raise AppendFailed(tp, "no answer")
        return await self.inner.append(tp, records)

    async def abandon(self) -> None:
        await self.inner.abandon()


def lose(lab: Lab, type_name: str, times: int) -> list[str]:
    """Lose a type of event so often; what was lost."""
    opened, lost = lab.log.appender, list[str]()

    def loses(records: Sequence[OutRecord]) -> bool:
        found = [dict(record.headers)["ce_type"].decode().rpartition(".")[2] for record in records]
        if type_name not in found or len(lost) == times:
            return False
        lost.append(type_name)
        return True

    async def appender() -> Losing:
        return Losing(await opened(), loses)

    lab.log.appender = appender  # type: ignore[method-assign]
    return lost


async def test_command_whose_batches_are_lost_is_not_abandoned_by_the_process_that_outlived_it(
    memory_lab: Lab,
) -> None:
    lab = memory_lab
    lost = lose(lab, "ExecutionStarted", times=9)
    start = await lab.send("x", k.StartExecution(agent="bot"))
    await lab.start_worker("one")

    assert types(await lab.trace("x", start)) == ["ExecutionStarted"]
    assert len(lost) == 9
    attempts = [e for e in await lab.facts(lab.events_tp("x")) if getattr(e.body, "attempting", -1) >= 0]
    assert len(attempts) > ABANDON_AFTER_DEATHS, "by its count alone it would have been given up"


async def test_command_whose_batch_is_never_taken_is_abandoned_in_the_end(
    memory_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody dies of it, but its partition stands still: that has an end as well."""
    lab = memory_lab
    lost = lose(lab, "ExecutionStarted", times=100)
    start = await lab.send("x", k.StartExecution(agent="bot"))
    monkeypatch.setattr(Worker, "_back_off", at_once)
    await lab.start_worker("one")

    assert types(await lab.trace("x", start)) == ["CommandAbandoned"]
    assert len(lost) == IN_A_BATCH + SPARED_MAX + ABANDON_AFTER_DEATHS


async def at_once(self: Worker, failures: int) -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("deaths", range(ABANDON_AFTER_DEATHS + 1))
async def test_command_that_others_died_at_is_decided_until_there_were_three(
    memory_lab: Lab, deaths: int
) -> None:
    """A rival that claimed, or a process that was killed meanwhile, looks the same: hence not after the first."""
    lab = memory_lab
    start = await lab.send("x", k.StartExecution(agent="bot"))
    await dead_writers(lab, attempting=0, deaths=deaths)
    await lab.start_worker("next")

    expected = "CommandAbandoned" if deaths == ABANDON_AFTER_DEATHS else "ExecutionStarted"
    assert types(await lab.trace("x", start)) == [expected]


async def test_repeat_that_careful_writers_died_on_is_not_recorded_as_abandoned(memory_lab: Lab) -> None:
    lab = memory_lab
    first = await lab.start_worker("one")
    await lab.ask("x", k.StartExecution(agent="bot"), command_id="start")
    await first.stop()
    await lab.send("x", k.StartExecution(agent="bot"), command_id="start")
    _, end = await lab.log.bounds(lab.commands_tp("x"))
    await dead_writers(lab, attempting=end - 1, deaths=ABANDON_AFTER_DEATHS)

    await lab.start_worker("two")
    await lab.ask("x", k.PauseExecution(), lab.olga)

    assert types(await lab.trace("x", "start")) == ["ExecutionStarted"]
    assert "CommandAbandoned" not in types(await lab.facts(lab.events_tp("x")))


async def test_forged_command_that_careful_writers_died_on_leaves_no_event(memory_lab: Lab) -> None:
    """Giving up is no way around the proof of who asks: what cannot be believed is a dead letter."""
    lab = memory_lab
    forger = Signer("gateway-1", Ed25519PrivateKey.generate())
    draft = Draft(k.StartExecution(agent="bot"), lab.agent, "forged", lab.key_of("x"))
    await lab.log.send(lab.commands_tp("x"), forger.sign([draft])[0])
    await dead_writers(lab, attempting=0, deaths=ABANDON_AFTER_DEATHS)

    await lab.start_worker("next")
    await lab.ask("x", k.StartExecution(agent="bot"))

    facts = await lab.facts(lab.events_tp("x"))
    letters = await lab.raws(TopicPartition(lab.log.topics.dead_letters, 0))
    assert "forged" not in [event.meta.command_id for event in facts]
    assert [dict(raw.headers)["placet_reason"] for raw in letters] == [b"abandoned"]


async def test_quiet_restarts_do_not_abandon_a_good_command(lab: Lab) -> None:
    for name in "abcde":
        running = await lab.start_worker(name)
        async with asyncio.timeout(20):
            while len(running.worker.writing) < lab.partitions + 1:
                await asyncio.sleep(0.01)
        await running.stop()
    await lab.start_worker("last")

    assert types(await lab.ask("x", k.StartExecution(agent="bot"))) == ["ExecutionStarted"]


def said_in_turn(ledger: Ledger, *bodies: Message) -> None:
    for body in bodies:
        offset = ledger.next_offset
        meta = EventMeta(f"e{offset}", START_MS, 0, 0, f"c{offset}", "", "")
        ledger.apply(Event(body, meta, log_key(0), 0, offset))


def claim_of(worker: str) -> WriterClaimed:
    return WriterClaimed(claim_id="c", after=-1, worker=worker)


TRIED = WriterAlive(commands_through=6, attempting=7)


def test_deaths_at_process_that_tried_again_counts_once_and_the_one_that_asks_not_at_all() -> None:
    ledger = Ledger(DomainWorld().partition)

    said_in_turn(ledger, claim_of("a"), TRIED, claim_of("a"), TRIED, claim_of("b"), TRIED)

    assert [ledger.deaths_at(7, of=who) for who in ("a", "b", "c")] == [1, 1, 2]
    assert ledger.deaths_at(8, of="c") == 0


def test_deaths_at_more_attempts_than_are_spared_count_each() -> None:
    ledger = Ledger(DomainWorld().partition)

    said_in_turn(ledger, claim_of("a"), *[TRIED] * (SPARED_MAX + ABANDON_AFTER_DEATHS))

    assert ledger.deaths_at(7, of="a") == ABANDON_AFTER_DEATHS


def test_deaths_at_command_that_is_tried_again_after_its_trace_counts_none() -> None:
    """Delivered again, it leaves no trace however well it goes."""
    ledger = Ledger(DomainWorld().partition)

    said_in_turn(ledger, claim_of("a"), TRIED, WriterAlive(commands_through=7), claim_of("b"), TRIED)

    assert (ledger.attempting, ledger.deaths_at(7, of="c")) == (-1, 0)


async def test_poison_of_one_partition_leaves_no_marks_on_the_others_of_its_process(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process tries one command at a time: when it is killed, only that one can have done it."""
    lab = Lab(MemoryLog(Topics(), 3, lambda: START_MS), 3, random.Random(seed))
    try:
        names = [lab.execution_on(partition) for partition in range(3)]
        for name in names:
            await lab.send(name, k.StartExecution(agent="bot"))
            await dead_writers(lab, attempting=0, deaths=1, execution_id=name)
        before = {name: len(await lab.raws(lab.events_tp(name))) for name in names}
        finish = PartitionWriter._finish

        async def stuck(self: PartitionWriter, round_: Round) -> None:
            if round_.commands:
                await asyncio.Event().wait()
            await finish(self, round_)

        monkeypatch.setattr(PartitionWriter, "_finish", stuck)
        monkeypatch.setattr(worker, "BACKOFF_MAX_S", 0.01)
        running = await lab.start_worker("one")
        async with asyncio.timeout(20):
            while len(running.worker._alone._waiters or ()) < 2:
                await asyncio.sleep(0.01)
        await running.kill()

        tried = [
            name
            for name in names
            for event in (await lab.facts(lab.events_tp(name)))
            if event.offset >= before[name] and getattr(event.body, "attempting", -1) >= 0
        ]
        assert len(tried) == 1
    finally:
        await lab.close()
