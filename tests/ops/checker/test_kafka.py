"""The checker on a real Kafka's log: offsets, times and headers as a broker keeps them."""

from __future__ import annotations

import random

import pytest

from log.places import TopicPartition
from ops.checker import check, check_log, read_log
from schemas import commands as k
from tests.log.logs import PARTITIONS, kafka_world
from tests.runtime.lab import Lab, body_of


@pytest.mark.broker
async def test_log_of_a_call_that_two_deciders_carried_breaks_nothing(
    kafka: str, topic_prefix: str, seed: int
) -> None:
    async with kafka_world(kafka, topic_prefix) as world:
        lab = Lab(world.log, PARTITIONS, random.Random(seed))
        first = await lab.start_worker("one")
        await lab.publish_basics()
        await lab.ask("x", k.StartExecution(agent="bot"))
        held = await lab.ask("x", k.ProposeToolCall(call_id="c", tool="send_money", arguments='{"amount":5}'))
        hold = body_of(held, "HoldOpened")
        await first.stop()
        await lab.start_worker("two")
        approve = k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest)
        await lab.ask("x", approve, lab.rita)
        await lab.ask("x", k.ConsumeGrant(call_id="c", digest=hold.digest, attempt_id="a"))
        await lab.ask("x", k.ReportResult(call_id="c", attempt_id="a", outcome="succeeded"))

        records = await read_log(world.log)
        notes: list[str] = []
        violations = check(records, topics=world.log.topics, note=notes.append)
        shorter = {tp: raws if tp != lab.events_tp("x") else raws[:-1] for tp, raws in records.items()}
        without_facts = {tp: raws if tp != lab.events_tp("x") else [] for tp, raws in records.items()}
        lost = {"at": 0, "client": "bot", "op": "ack", "tenant": "acme", "command_id": "r", "events": ["e"]}
        await lab.close()

    assert (violations, notes) == ([], [])
    assert check(without_facts, topics=world.log.topics, note=notes.append) == []
    (told,) = notes
    assert "5 commands have no answer yet" in told
    assert f"the end of {lab.events_tp('x')} is lost" in told
    assert [v.invariant for v in check(shorter, [lost], topics=world.log.topics)] == ["I3"]


@pytest.mark.broker
@pytest.mark.parametrize("left", [0, 1])
async def test_log_whose_first_facts_were_deleted_is_broken_and_one_whose_first_commands_were_is_not(
    kafka: str, topic_prefix: str, seed: int, left: int
) -> None:
    async with kafka_world(kafka, topic_prefix) as world:
        lab = Lab(world.log, PARTITIONS, random.Random(seed))
        await lab.start_worker("one")
        await lab.publish_basics()
        await lab.ask("x", k.StartExecution(agent="bot"))
        await lab.ask("x", k.ProposeToolCall(call_id="c", tool="read_mail", arguments="{}"))
        await lab.close()
        events = lab.events_tp("x")
        _, asked = await world.log.bounds(
            commands := TopicPartition(world.log.topics.commands, events.partition)
        )
        await world.delete_before(commands, asked)
        _, whole = await check_log(world.log)
        first = (await world.log.bounds(events))[1] - left
        await world.delete_before(events, first)
        _, cut = await check_log(world.log)

    assert whole == [], "commands are kept for days"
    assert [(one.invariant, one.where) for one in cut] == [("I3", f"{events}@{first}")]
    assert "nothing behind them counts" in cut[0].what
