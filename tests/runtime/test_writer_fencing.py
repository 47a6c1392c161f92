"""Who may write: claims, zombies, and what a writer believes of itself; with signatures owed, and without."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from log.places import TopicPartition
from log.port import Appender
from schemas import commands as k
from schemas.event_signatures import ANYWHERE
from schemas.events.executions import ExecutionPaused
from schemas.events.log import WriterClaimed
from schemas.headers import event_record
from schemas.ids import derived_id, event_id
from schemas.record import EventMeta, OutRecord
from schemas.term import NO_CLAIM, rule_of
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.runtime.claim import claim, log_key
from services.runtime.executions_partition import ExecutionsPartition
from services.runtime.ledger import Ledger
from tests.runtime.lab import Lab, said, types


@pytest.fixture(autouse=True, params=["unsigned", "signed"])
def _signatures(request: pytest.FixtureRequest, lab: Lab, tmp_path: Path) -> None:
    if request.param == "signed":
        lab.sign(tmp_path)


@dataclass
class Together:
    """An appender that waits for its rivals, which have all read the same end of the log then."""

    appender: Appender
    rivals: asyncio.Barrier

    async def append(self, tp: TopicPartition, records: Sequence[OutRecord]) -> int:
        await self.rivals.wait()
        return await self.appender.append(tp, records)

    async def abandon(self) -> None:
        await self.appender.abandon()


def fresh_ledger(lab: Lab, tp: TopicPartition) -> Ledger:
    rules = Definitions(policies=PolicySet())
    return Ledger(ExecutionsPartition(lambda: rules), rule_of(lab.signatures, tp.topic))


async def claimed(
    lab: Lab, tp: TopicPartition, name: str, rivals: asyncio.Barrier | None = None
) -> tuple[Ledger, bool]:
    ledger = fresh_ledger(lab, tp)
    appender: Appender = await lab.log.appender()
    if rivals is not None:
        appender = Together(appender, rivals)
    won = await claim(lab.log, appender, tp, ledger, name, name, lab.event_signer)
    return ledger, won


def claim_record(tp: TopicPartition, name: str, after: int) -> OutRecord:
    body = WriterClaimed(claim_id=name, after=after, worker=name)
    return event_record(body, EventMeta(derived_id(name), 0, after, 0, name, "", ""), log_key(tp.partition))


def zombie_record(lab: Lab, execution_id: str, term: int, command_id: str = "zombie") -> OutRecord:
    meta = EventMeta(event_id(command_id, term, 0), 1, term, 99, command_id, "", "acme", 10_000)
    return event_record(ExecutionPaused(reason="zombie", by="zombie"), meta, lab.key_of(execution_id))


async def test_claim_of_an_empty_partition_counts(lab: Lab) -> None:
    ledger, won = await claimed(lab, lab.events_tp("x"), "one")

    assert won
    assert ledger.rule.claim == 0


async def test_two_claims_after_the_same_one_only_the_first_counts(lab: Lab) -> None:
    tp = lab.events_tp("x")
    first, _ = await claimed(lab, tp, "first")
    rivals = [claim_record(tp, name, first.rule.claim) for name in ("second", "third")]
    base = await lab.append(tp, rivals, ANYWHERE)

    reader, _ = await claimed(lab, tp, "fourth")

    facts = await lab.facts(tp)
    assert [said(event).worker for event in facts] == ["first", "second", "fourth"]
    assert base + 1 not in [event.offset for event in facts]
    assert reader.rule.claim == facts[-1].offset


async def test_claim_that_lost_the_race_says_so(lab: Lab) -> None:
    tp = lab.events_tp("x")
    slow = fresh_ledger(lab, tp)
    await claimed(lab, tp, "quick")
    # The slow one read the log before the quick one claimed: its claim names the wrong predecessor.
    offset = await lab.append(tp, [claim_record(tp, "slow", NO_CLAIM)], ANYWHERE)
    async for chunk in lab.log.read(tp, 0, offset + 1):
        for raw in chunk:
            slow.read(raw)

    assert slow.rule.claim != offset


async def test_case_32_of_two_claims_in_a_race_one_wins_and_what_no_decider_signed_is_no_rival(
    lab: Lab,
) -> None:
    tp = lab.events_tp("x")
    first, _ = await claimed(lab, tp, "first")
    race = asyncio.Barrier(3)

    async def forged() -> int:
        # By who may produce and has no decider's key: it lands where it may, before both, between or behind.
        appender = Together(await lab.log.appender(), race)
        return await appender.append(tp, [claim_record(tp, "stranger", first.rule.claim)])

    (one, one_won), (two, two_won), stranger = await asyncio.gather(
        claimed(lab, tp, "one", race), claimed(lab, tp, "two", race), forged()
    )

    # A claim that is not signed is a claim where no signatures are owed: then the first of the three counts.
    believed = await lab.facts(tp)
    rivals = [event for event in believed if said(event).after == first.rule.claim]
    assert len(rivals) == 1
    assert one_won + two_won == (said(rivals[0]).worker != "stranger")
    assert lab.signatures is None or stranger not in [event.offset for event in believed]
    reader, won = await claimed(lab, tp, "later")
    assert (won, said((await lab.facts(tp))[-2]).worker) == (True, said(rivals[0]).worker)
    assert reader.rule.claim > max(one.rule.claim, two.rule.claim)


async def test_case_32_batch_of_a_writer_whose_place_was_taken_counts_for_nobody(lab: Lab) -> None:
    """Two that believe to hold one term, as after a copy of a machine: who lands where it signed for counts."""
    await lab.start_worker("one")
    await lab.ask("x1", k.StartExecution(agent="bot"))
    tp = lab.events_tp("x1")
    term = (await lab.facts(tp))[-1].meta.term
    _, end = await lab.log.bounds(tp)
    batches = [[zombie_record(lab, "x1", term, name)] for name in ("quick", "slow")]

    for batch in batches:
        await lab.append(tp, batch, end)

    counted = [event.meta.command_id for event in await lab.facts(tp) if event.type == "ExecutionPaused"]
    assert counted == (["quick", "slow"] if lab.signatures is None else ["quick"])


async def test_deposed_writer_with_a_healthy_look_changes_nothing(lab: Lab) -> None:
    await lab.start_worker("old")
    await lab.publish_basics()
    await lab.ask("x1", k.StartExecution(agent="bot"))
    tp = lab.events_tp("x1")
    old_term = (await lab.facts(tp))[-1].meta.term

    # A second worker claims behind the first one's back; nothing tells the first one.
    ledger, won = await claimed(lab, tp, "new")
    assert won
    trace = await lab.ask("x1", k.ProposeToolCall(call_id="c1", tool="read_file", arguments="{}"))

    # The first one noticed from its own acknowledgement, claimed again, and decided the command under that claim.
    assert types(trace) == ["ToolCallProposed", "PolicyVerdictIssued", "ToolCallReleased"]
    assert trace[0].meta.term > ledger.rule.claim > old_term
    every = [e for e in await lab.every_event(tp) if e.type == "ToolCallProposed"]
    assert len({event.meta.term for event in every}) == len(every), (
        "one accepted proposal, the rest under dead terms"
    )
    assert len([e for e in await lab.facts(tp) if e.type == "ToolCallProposed"]) == 1


async def test_zombies_late_batch_changes_nothing(lab: Lab) -> None:
    running = await lab.start_worker("one")
    await lab.ask("x1", k.StartExecution(agent="bot"))
    tp = lab.events_tp("x1")
    old_term = (await lab.facts(tp))[-1].meta.term
    await running.stop()
    await lab.start_worker("two")
    await lab.ask("x1", k.ProposeToolCall(call_id="c1", tool="read_file", arguments="{}"))

    await lab.append(tp, [zombie_record(lab, "x1", old_term)])
    trace = await lab.ask("x1", k.ResumeExecution(), actor=lab.olga)

    assert said(trace[0]).code == "not_open", "the zombie's pause would have made this resume succeed"
    assert "ExecutionPaused" not in types(await lab.facts(tp))


async def test_zombies_duplicate_event_id_is_not_taken_for_the_answer(lab: Lab) -> None:
    await lab.start_worker("one")
    await lab.ask("x1", k.StartExecution(agent="bot"))
    tp = lab.events_tp("x1")
    term = (await lab.facts(tp))[-1].meta.term
    # Another command's event id, but a term that is not in force: an id proves nothing by itself.
    await lab.append(tp, [zombie_record(lab, "x1", term + 1_000, "next")])

    trace = await lab.ask("x1", k.PauseExecution(), actor=lab.olga, command_id="next")

    assert types(trace) == ["ExecutionPaused"]
    assert said(trace[0]).by == "olga"


async def test_reader_started_mid_log_needs_the_claim_in_force(lab: Lab) -> None:
    await lab.start_worker("one")
    await lab.ask("x1", k.StartExecution(agent="bot"))
    tp = lab.events_tp("x1")
    facts = await lab.facts(tp)
    middle = facts[-1].offset
    term = facts[-1].meta.term
    await lab.append(tp, [zombie_record(lab, "x1", term + 7)])
    later = [(event, raw) for event, raw in await lab.records(tp) if event.offset >= middle]

    with_claim, without = (rule_of(lab.signatures, tp.topic, begin) for begin in (term, NO_CLAIM))

    assert [event.type for event, raw in later if with_claim.admits(event, raw)] == ["ExecutionStarted"]
    assert [event for event, raw in later if without.admits(event, raw)] == []


async def test_forged_event_without_a_term_in_force_is_no_fact(lab: Lab) -> None:
    await lab.start_worker("one")
    await lab.ask("x1", k.StartExecution(agent="bot"))
    tp = lab.events_tp("x1")

    await lab.append(tp, [zombie_record(lab, "x1", -1)])
    trace = await lab.ask("x1", k.PauseExecution(), actor=lab.olga)

    assert types(trace) == ["ExecutionPaused"]
    assert [said(e).by for e in await lab.facts(tp) if e.type == "ExecutionPaused"] == ["olga"]


@pytest.mark.parametrize("workers", [2, 3])
async def test_workers_share_partitions_and_one_of_them_may_die(lab: Lab, workers: int) -> None:
    started = [await lab.start_worker(f"w{i}") for i in range(workers)]
    ids = [lab.execution_on(partition) for partition in range(lab.partitions)]
    await asyncio.gather(*(lab.ask(name, k.StartExecution(agent="bot")) for name in ids))

    await started[0].stop()
    traces = await asyncio.gather(*(lab.ask(name, k.PauseExecution(), actor=lab.olga) for name in ids))

    assert [types(trace) for trace in traces] == [["ExecutionPaused"]] * len(ids)
