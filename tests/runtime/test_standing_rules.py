"""Standing rules across partitions: made, used and suspended by commands that deciders carry, through every kill."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from log.memory.log import MemoryLog
from log.places import TopicPartition
from ops.checker import check, read_log
from schemas import codec
from schemas import commands as k
from schemas.actor import decider_actor
from schemas.envelope import Draft
from schemas.ids import definition_key, execution_key, rule_uses_key
from schemas.message import Message
from schemas.record import Event, OutRecord
from schemas.topics import Topics, partition_of
from services.runtime import snapshots
from services.runtime.clock import wall_ms
from tests.runtime.lab import PAYMENT_SCHEMA, PROJECT, TENANT, Lab, body_of, said, types
from tests.schemas.test_trace_context import TRACE

PARTITIONS = 12
DEADLINE_S = 60.0
MILD = {"name": "send_money", "inputSchema": PAYMENT_SCHEMA, "annotations": {"destructiveHint": False}}


def policy(**remember: Any) -> dict[str, Any]:
    hold = {"timeout_seconds": 600, "remember": {"four_eyes": False, "max_uses": "unlimited", **remember}}
    rules = [{"id": "payments", "match": {"tools": ["send_*"]}, "then": "hold", "hold": hold}]
    return {"policy": "lab", "scope": {"tenant": "*"}, "rules": rules}


@pytest.fixture
async def many(seed: int) -> AsyncIterator[Lab]:
    """A laboratory of twelve partitions in memory."""
    laboratory = Lab(MemoryLog(Topics(), PARTITIONS, wall_ms), PARTITIONS, random.Random(seed))
    try:
        yield laboratory
    finally:
        await laboratory.close()


class Halting:
    """A log on which a process stops for ever just before, or just after, it sends its first command of a type."""

    def __init__(self, log: MemoryLog, kind: type[Message], lands: bool) -> None:
        self._log, self._kind, self._lands = log, kind, lands
        self.reached = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def send(self, tp: TopicPartition, record: OutRecord) -> int:
        if tp.topic not in (self._log.topics.commands, self._log.topics.definition_commands):
            return await self._log.send(tp, record)
        if not isinstance(codec.decode(record.value), self._kind):
            return await self._log.send(tp, record)
        if self._lands:
            await self._log.send(tp, record)
        self.reached.set()
        await asyncio.Event().wait()
        raise AssertionError("never")


async def publish(lab: Lab, **remember: Any) -> None:
    await lab.publish_tool(MILD)
    await lab.publish_policy(policy(**remember))


async def propose(lab: Lab, execution_id: str, call_id: str) -> list[Event]:
    command = k.ProposeToolCall(call_id=call_id, tool="send_money", arguments='{"amount":5}')
    return await lab.ask(execution_id, command)


async def approve(lab: Lab, execution_id: str, held: list[Event], uses: int | None) -> str:
    """Approve a held call for a rule; the rule's id."""
    hold = body_of(held, "HoldOpened")
    command = k.DecideHold(
        hold_id=hold.hold_id,
        decision="approve",
        digest=hold.digest,
        scope="rule",
        remember=json.dumps({"uses": uses}),
    )
    return str(body_of(await lab.ask(execution_id, command, lab.rita), "RuleAsked").rule_id)


async def definition_of(lab: Lab, name: str, rule_id: str) -> Event:
    """The newest definition event of a type about a rule, once every partition has adopted it."""
    tp = TopicPartition(lab.log.topics.definitions, 0)
    async with asyncio.timeout(DEADLINE_S):
        while True:
            facts = [e for e in await lab.facts(tp) if e.type == name]
            found = [e for e in facts if getattr(e.body, "rule_id", "") == rule_id]
            if found:
                await lab.adopted(found[-1].offset)
                return found[-1]
            await asyncio.sleep(0.01)


async def ruled(lab: Lab, uses: int | None) -> str:
    """A rule in force everywhere."""
    await lab.ask("x", k.StartExecution(agent="bot"))
    rule_id = await approve(lab, "x", await propose(lab, "x", "first"), uses)
    await definition_of(lab, "RuleMade", rule_id)
    return rule_id


async def outcome(lab: Lab, execution_id: str, call_id: str) -> str:
    """What became of a call: ToolCallReleased or HoldOpened."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            for event in await lab.facts(lab.events_tp(execution_id)):
                about = (
                    event.key == lab.key_of(execution_id) and getattr(event.body, "call_id", "") == call_id
                )
                if about and event.type in ("ToolCallReleased", "HoldOpened"):
                    return event.type
            await asyncio.sleep(0.01)


async def every_fact(lab: Lab) -> list[Event]:
    found = []
    for partition in range(lab.partitions):
        found += await lab.facts(TopicPartition(lab.log.topics.executions, partition))
    return found


async def test_rule_with_one_use_raced_from_twelve_partitions_is_used_once(many: Lab) -> None:
    for name in ("one", "two", "three"):
        await many.start_worker(name)
    await publish(many)
    rule_id = await ruled(many, uses=1)
    runs = [many.execution_on(partition) for partition in range(PARTITIONS)]
    await asyncio.gather(*(many.ask(run, k.StartExecution(agent="bot")) for run in runs))

    await asyncio.gather(*(propose(many, run, "race") for run in runs))
    ends = [await outcome(many, run, "race") for run in runs]

    assert sorted(ends) == ["HoldOpened"] * (PARTITIONS - 1) + ["ToolCallReleased"]
    facts = await every_fact(many)
    assert types(facts).count("RuleUseReserved") == 1
    assert [said(e).number for e in facts if e.type == "RuleUseReserved"] == [1]
    assert check(await read_log(many.log)) == []
    assert all(e.key == rule_uses_key(TENANT, PROJECT, rule_id) for e in facts if "RuleUse" in e.type)


async def test_rule_with_some_uses_gives_exactly_those(many: Lab) -> None:
    await many.start_worker("one")
    await publish(many)
    await ruled(many, uses=5)
    runs = [many.execution_on(partition) for partition in range(PARTITIONS)]
    await asyncio.gather(*(many.ask(run, k.StartExecution(agent="bot")) for run in runs))

    await asyncio.gather(*(propose(many, run, call) for run in runs for call in ("a", "b")))
    ends = [await outcome(many, run, call) for run in runs for call in ("a", "b")]

    assert ends.count("ToolCallReleased") == 5
    numbers = [said(e).number for e in await every_fact(many) if e.type == "RuleUseReserved"]
    assert numbers == [1, 2, 3, 4, 5]


async def test_use_of_a_rule_belongs_to_the_trace_of_its_call(many: Lab) -> None:
    await many.start_worker("one")
    await publish(many)
    rule_id = await ruled(many, uses=5)
    run = many.execution_on(7)
    await many.ask(run, k.StartExecution(agent="bot"))
    command = k.ProposeToolCall(call_id="traced", tool="send_money", arguments='{"amount":5}')
    draft = Draft(command, many.agent, "traced", execution_key(TENANT, PROJECT, run), trace=TRACE)
    (record,) = many.signer.sign([draft])
    await many.log.send(many.commands_tp(run), record)

    assert await outcome(many, run, "traced") == "ToolCallReleased"
    facts = await every_fact(many)
    assert [e.key for e in facts if e.type == "RuleUseReserved" and e.meta.trace == TRACE] == [
        rule_uses_key(TENANT, PROJECT, rule_id)
    ]
    (released,) = [e for e in facts if e.type == "ToolCallReleased" and e.key == many.key_of(run)]
    assert released.meta.trace == TRACE


@pytest.mark.parametrize("lands", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", [k.ReserveRuleUse, k.SettleReservation])
async def test_process_killed_while_it_carries_a_use_leaves_it_to_the_next(
    many: Lab, kind: type[Message], lands: bool
) -> None:
    first = await many.start_worker("one")
    await publish(many)
    await ruled(many, uses=1)
    await first.stop()
    log = Halting(many.log, kind, lands)  # type: ignore[arg-type]
    second = await many.start_worker("two", log=log)
    await many.send("x", k.ProposeToolCall(call_id="second", tool="send_money", arguments='{"amount":5}'))
    await asyncio.wait_for(log.reached.wait(), DEADLINE_S)

    await second.kill()
    await many.start_worker("three")

    assert await outcome(many, "x", "second") == "ToolCallReleased"
    assert types(await every_fact(many)).count("RuleUseReserved") == 1
    assert check(await read_log(many.log)) == []


@pytest.mark.parametrize("lands", [False, True], ids=["before", "after"])
async def test_process_killed_while_it_carries_a_rule_leaves_it_to_the_next(many: Lab, lands: bool) -> None:
    log = Halting(many.log, k.MakeRule, lands)  # type: ignore[arg-type]
    first = await many.start_worker("one", log=log)
    await publish(many)
    await many.ask("x", k.StartExecution(agent="bot"))
    rule_id = await approve(many, "x", await propose(many, "x", "first"), None)
    await asyncio.wait_for(log.reached.wait(), DEADLINE_S)

    await first.kill()
    await many.start_worker("two")
    await definition_of(many, "RuleMade", rule_id)

    assert await outcome_of(many, "x", "second") == "ToolCallReleased"
    definitions = await many.facts(TopicPartition(many.log.topics.definitions, 0))
    assert types(definitions).count("RuleMade") == 1


async def outcome_of(lab: Lab, execution_id: str, call_id: str) -> str:
    await propose(lab, execution_id, call_id)
    return await outcome(lab, execution_id, call_id)


@pytest.mark.parametrize("lands", [False, True], ids=["before", "after"])
async def test_process_killed_while_it_carries_a_contradiction_leaves_it_to_the_next(
    many: Lab, lands: bool
) -> None:
    first = await many.start_worker("one")
    await publish(many)
    rule_id = await ruled(many, None)
    await first.stop()
    log = Halting(many.log, k.SuspendRule, lands)  # type: ignore[arg-type]
    second = await many.start_worker("two", log=log)
    assert await outcome_of(many, "x", "second") == "ToolCallReleased"
    revoked = await many.ask("x", k.RevokeGrant(call_id="second"), many.rita)
    assert types(revoked) == ["RuleContradicted", "GrantRevoked"]
    await asyncio.wait_for(log.reached.wait(), DEADLINE_S)

    await second.kill()
    await many.start_worker("three")
    suspended: Any = (await definition_of(many, "RuleSuspended", rule_id)).body

    assert json.loads(suspended.evidence)["by"] == "rita"
    assert await outcome_of(many, "x", "third") == "HoldOpened"
    assert check(await read_log(many.log)) == []


class Losing(Halting):
    """A log on which every command of a type is lost on its way."""

    async def send(self, tp: TopicPartition, record: OutRecord) -> int:
        if isinstance(codec.decode(record.value), self._kind):
            self.reached.set()
            return 0
        return await self._log.send(tp, record)


async def test_contradicted_rule_rests_where_it_was_said_though_the_definitions_never_hear_of_it(
    many: Lab,
) -> None:
    log = Losing(many.log, k.SuspendRule, False)  # type: ignore[arg-type]
    await many.start_worker("one", log=log)
    await publish(many)
    await ruled(many, None)
    await outcome_of(many, "x", "second")
    await many.ask("x", k.RevokeGrant(call_id="second"), many.rita)

    assert await outcome_of(many, "x", "third") == "HoldOpened"
    await asyncio.wait_for(log.reached.wait(), DEADLINE_S)
    definitions = await many.facts(TopicPartition(many.log.topics.definitions, 0))
    assert "RuleSuspended" not in types(definitions)


async def test_use_whose_answers_are_lost_is_asked_for_again_and_then_asked_of_a_person(many: Lab) -> None:
    log = Losing(many.log, k.SettleReservation, False)  # type: ignore[arg-type]
    await many.start_worker("one", log=log)
    await publish(many)
    await ruled(many, uses=1)

    assert await outcome_of(many, "x", "second") == "HoldOpened"
    facts = await every_fact(many)
    asked = [said(e) for e in facts if e.type == "CommandRefused" and said(e).command == "ReserveRuleUse"]
    assert {refused.code for refused in asked} == {"duplicate"}
    assert types(facts).count("RuleUseReserved") == 1


async def test_rule_with_four_eyes_is_used_once_another_person_activated_it(many: Lab) -> None:
    await many.start_worker("one")
    await publish(many, four_eyes=True)
    rule_id = await ruled(many, None)
    assert await outcome_of(many, "x", "second") == "HoldOpened"

    body = k.ActivateRule(rule_id=rule_id)
    for number, actor in enumerate((many.rita, many.olga)):
        draft = Draft(body, actor, f"activate-{number}", definition_key(TENANT, "rule", rule_id))
        record = many.signer.sign([draft])[0]
        await many.log.send(TopicPartition(many.log.topics.definition_commands, 0), record)
    activated: Any = (await definition_of(many, "RuleActivated", rule_id)).body

    assert activated.by == "olga"
    assert await outcome_of(many, "x", "third") == "ToolCallReleased"


async def test_reservation_forged_with_a_gateways_key_goes_to_the_dead_letters(many: Lab) -> None:
    await many.start_worker("one")
    await publish(many)
    rule_id = await ruled(many, uses=1)
    key = rule_uses_key(TENANT, PROJECT, rule_id)
    body = k.ReserveRuleUse(
        rule_id=rule_id, reservation_id="forged", execution_id="x", call_id="c", revision=1, digest="d"
    )
    record = many.signer.sign([Draft(body, decider_actor(TENANT, PROJECT), "forged", key)])[0]
    await many.log.send(TopicPartition(many.log.topics.commands, partition_of(key, PARTITIONS)), record)

    assert await outcome_of(many, "x", "second") == "ToolCallReleased"
    letters = [
        raw
        for partition in range(PARTITIONS)
        for raw in await many.raws(TopicPartition(many.log.topics.dead_letters, partition))
    ]
    assert [dict(raw.headers)["placet_reason"] for raw in letters] == [b"unbelievable"]


async def test_rule_and_its_uses_survive_in_a_snapshot(many: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "WORTHWHILE_EVENTS", 1)
    first = await many.start_worker("one")
    await publish(many)
    await ruled(many, uses=2)
    assert await outcome_of(many, "x", "second") == "ToolCallReleased"
    await first.stop()
    for name in ("two", "three"):
        running = await many.start_worker(name)
        await asyncio.gather(
            *(many.ask(many.execution_on(p), k.StartExecution(agent="bot")) for p in range(PARTITIONS))
        )
        await running.stop()
    await many.start_worker("four")

    assert await outcome_of(many, "x", "third") == "ToolCallReleased"
    assert await outcome_of(many, "x", "fourth") == "HoldOpened"
