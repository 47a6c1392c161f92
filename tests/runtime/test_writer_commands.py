"""What a writer does with commands: good ones, repeated ones, forged, misplaced, far too large ones."""

import asyncio
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from log.places import TopicPartition
from schemas import commands as k
from schemas.envelope import Draft, Signer
from schemas.ids import definition_key
from schemas.limits import DECISION_MAX_BYTES
from schemas.record import OutRecord
from schemas.topics import partition_of
from tests.runtime.lab import AGENT, OLGA, PROJECT, TENANT, Lab, body_of, types


async def held(lab: Lab, execution_id: str, call_id: str = "pay", amount: int = 5) -> Any:
    """A payment that waits: its HoldOpened."""
    command = k.ProposeToolCall(call_id=call_id, tool="send_money", arguments=f'{{"amount":{amount}}}')
    return body_of(await lab.ask(execution_id, command), "HoldOpened")


async def dead_letters(lab: Lab) -> list[dict[str, str]]:
    found = []
    for partition in range(await lab.log.partition_count(lab.log.topics.dead_letters)):
        for raw in await lab.raws(TopicPartition(lab.log.topics.dead_letters, partition)):
            found.append({name: value.decode(errors="replace") for name, value in raw.headers})
    return found


async def until_dead_letters(lab: Lab, count: int) -> list[dict[str, str]]:
    async with asyncio.timeout(20):
        while len(found := await dead_letters(lab)) < count:
            await asyncio.sleep(0.01)
    return found


async def test_hold_approved_consumed_reported_runs_once(lab: Lab) -> None:
    await lab.start_worker("w")
    await lab.publish_basics()
    await lab.ask("x", k.StartExecution(agent="bot"))
    hold = await held(lab, "x")

    decided = await lab.ask(
        "x", k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest), lab.rita
    )
    consumed = await lab.ask("x", k.ConsumeGrant(call_id="pay", digest=hold.digest, attempt_id="a1"))
    again = await lab.ask("x", k.ConsumeGrant(call_id="pay", digest=hold.digest, attempt_id="a2"))
    ended = await lab.ask(
        "x", k.ReportResult(call_id="pay", attempt_id="a1", outcome="succeeded", output="7")
    )

    assert types(decided) == ["DecisionRecorded", "ToolCallReleased"]
    assert types(consumed) == ["GrantConsumed"]
    assert body_of(again, "CommandRefused").code == "already_consumed"
    assert body_of(ended, "ToolCallSucceeded").output == "7"


async def test_same_command_through_two_gateways_is_decided_once(lab: Lab) -> None:
    await lab.start_worker("w")
    await lab.publish_basics()
    await lab.ask("x", k.StartExecution(agent="bot"))
    command = k.ProposeToolCall(call_id="c", tool="read_file", arguments="{}")

    await asyncio.gather(*(lab.send("x", command, command_id="same") for _ in range(2)))
    await lab.ask("x", k.PauseExecution(), lab.olga)

    facts = await lab.facts(lab.events_tp("x"))
    assert types([e for e in facts if e.meta.command_id == "same"]).count("ToolCallProposed") == 1


async def test_repeat_after_a_restart_is_still_decided_once(lab: Lab) -> None:
    first = await lab.start_worker("one")
    await lab.ask("x", k.StartExecution(agent="bot"))
    await lab.ask("x", k.PauseExecution(), lab.olga, command_id="pause")
    await first.stop()

    await lab.start_worker("two")
    await lab.send("x", k.PauseExecution(), lab.olga, command_id="pause")
    await lab.ask("x", k.ResumeExecution(), lab.olga)

    facts = await lab.facts(lab.events_tp("x"))
    assert types(facts).count("ExecutionPaused") == 1


async def test_case_26_known_id_with_another_body_leaves_a_refusal_once_per_body(lab: Lab) -> None:
    first = await lab.start_worker("one")
    await lab.ask("x", k.StartExecution(agent="bot"))
    await lab.ask("x", k.PauseExecution(reason="one"), lab.olga, command_id="same")
    for _ in range(2):
        await lab.send("x", k.PauseExecution(reason="two"), lab.olga, command_id="same")
    await lab.ask("x", k.ResumeExecution(), lab.olga)
    await first.stop()

    # The digests are folded from the log again, and a repeat of either body leaves nothing more.
    await lab.start_worker("two")
    for reason in ("one", "two", "three"):
        await lab.send("x", k.PauseExecution(reason=reason), lab.olga, command_id="same")
    await lab.ask("x", k.CancelExecution(), lab.olga)

    trace = [e for e in await lab.facts(lab.events_tp("x")) if e.meta.command_id == "same"]
    assert types(trace) == ["ExecutionPaused", "CommandRefused", "CommandRefused"]
    assert {getattr(e.body, "code", "") for e in trace[1:]} == {"idempotency_key_reused"}
    assert len({e.meta.event_id for e in trace}) == len({e.meta.command_digest for e in trace}) == 3


async def test_case_26_known_id_without_an_execution_leaves_a_refusal(lab: Lab) -> None:
    await lab.start_worker("w")
    await lab.ask("none", k.PauseExecution(reason="one"), lab.olga, command_id="same")
    await lab.send("none", k.PauseExecution(reason="two"), lab.olga, command_id="same")
    await lab.ask("none", k.PauseExecution(reason="three"), lab.olga)

    trace = [e for e in await lab.facts(lab.events_tp("none")) if e.meta.command_id == "same"]
    assert [body_of([e], "CommandRefused").code for e in trace] == ["not_found", "idempotency_key_reused"]


async def test_case_26_definition_under_a_known_id_with_another_body_is_refused(lab: Lab) -> None:
    await lab.start_worker("w")
    key = definition_key(TENANT, "tool", "read_file", PROJECT)
    for description in ("one", "two", "one"):
        text = json.dumps({"name": "read_file", "description": description})
        draft = Draft(k.PublishTool(name="read_file", definition=text), OLGA, "same", key)
        record = lab.signer.sign([draft])[0]
        await lab.log.send(TopicPartition(lab.log.topics.definition_commands, 0), record)
    await lab.publish_tool({"name": "another"})

    facts = await lab.facts(TopicPartition(lab.log.topics.definitions, 0))
    trace = [event for event in facts if event.meta.command_id == "same"]
    assert types(trace) == ["ToolPublished", "CommandRefused"]
    assert body_of(trace, "CommandRefused").code == "idempotency_key_reused"


async def test_command_in_the_wrong_partition_goes_to_the_dead_letters(lab: Lab) -> None:
    await lab.start_worker("w")
    right = lab.commands_tp("x")
    wrong = TopicPartition(right.topic, (right.partition + 1) % lab.partitions)

    await lab.log.send(wrong, lab.record("x", k.StartExecution(agent="bot")))
    (letter,) = await until_dead_letters(lab, 1)

    assert letter["placet_reason"] == "wrong_partition"
    assert letter["ce_id"] == f"{wrong.topic}/{wrong.partition}/0"
    assert await lab.facts(TopicPartition(lab.log.topics.executions, wrong.partition)) != []


async def test_command_in_the_topic_of_definitions_goes_to_the_dead_letters(lab: Lab) -> None:
    await lab.start_worker("w")
    await lab.publish_basics()
    definitions = TopicPartition(lab.log.topics.definitions, 0)
    wrong = TopicPartition(lab.log.topics.definition_commands, 0)

    await lab.log.send(wrong, lab.record("x", k.ConsumeGrant(call_id="c", digest="d" * 64, attempt_id="a")))
    (letter,) = await until_dead_letters(lab, 1)

    assert letter["placet_reason"] == "wrong_topic"
    facts = await lab.facts(definitions)
    assert set(types(facts)) <= {"WriterClaimed", "WriterAlive", "PolicyPublished", "ToolPublished"}


async def test_definition_in_the_topic_of_commands_goes_to_the_dead_letters(lab: Lab) -> None:
    await lab.start_worker("w")
    key = definition_key(TENANT, "tool", "read_file", PROJECT)
    (record,) = lab.signer.sign([Draft(k.PublishTool(name="read_file", definition="{}"), OLGA, "here", key)])
    await lab.log.send(TopicPartition(lab.log.topics.commands, partition_of(key, lab.partitions)), record)
    (letter,) = await until_dead_letters(lab, 1)

    assert letter["placet_reason"] == "wrong_topic"
    await lab.ask("x", k.StartExecution(agent="bot"))


async def test_forged_decision_straight_to_the_log_is_not_believed(lab: Lab) -> None:
    await lab.start_worker("w")
    await lab.publish_basics()
    await lab.ask("x", k.StartExecution(agent="bot"))
    hold = await held(lab, "x")
    forger = Signer("gateway-1", Ed25519PrivateKey.generate())
    approve = k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest)

    draft = Draft(approve, lab.rita, "forged", lab.key_of("x"))
    await lab.log.send(lab.commands_tp("x"), forger.sign([draft])[0])
    unsigned = forger.sign([draft])[0]
    bare = OutRecord(unsigned.key, unsigned.value, unsigned.headers[:-1])
    await lab.log.send(lab.commands_tp("x"), bare)
    letters = await until_dead_letters(lab, 2)
    refused = await lab.ask("x", k.ConsumeGrant(call_id="pay", digest=hold.digest, attempt_id="a"))

    assert {letter["placet_reason"] for letter in letters} == {"unbelievable"}
    assert body_of(refused, "CommandRefused").code == "not_released"


async def test_foreign_record_goes_to_the_dead_letters_and_the_partition_goes_on(lab: Lab) -> None:
    await lab.start_worker("w")

    await lab.log.send(lab.commands_tp("x"), OutRecord(b"", b"hello", ()))
    trace = await lab.ask("x", k.StartExecution(agent="bot"))

    assert types(trace) == ["ExecutionStarted"]
    assert len(await until_dead_letters(lab, 1)) == 1


async def test_decision_over_the_ceiling_is_refused_as_too_large(lab: Lab) -> None:
    await lab.start_worker("w")
    await lab.ask("x", k.StartExecution(agent="bot"))
    huge = k.FailExecution(error="e" * (DECISION_MAX_BYTES + 200_000))

    trace = await lab.ask("x", huge)

    assert body_of(trace, "CommandRefused").code == "too_large"
    assert types(await lab.ask("x", k.CompleteExecution())) == ["ExecutionCompleted"]


async def test_many_large_commands_at_once_lose_no_record(lab: Lab) -> None:
    """A batch builder that is full drops a record without a word; a round is cut before that."""
    await lab.start_worker("w")
    await lab.publish_basics()
    await lab.ask("x", k.StartExecution(agent="bot"))
    arguments = json.dumps({"text": "a" * 120_000}, separators=(",", ":"))

    names = [
        await lab.send("x", k.ProposeToolCall(call_id=f"c{i}", tool="read_file", arguments=arguments))
        for i in range(20)
    ]
    traces = [await lab.trace("x", name) for name in names]

    assert {tuple(types(trace)) for trace in traces} == {
        ("ToolCallProposed", "PolicyVerdictIssued", "ToolCallReleased")
    }


async def test_publish_then_propose_is_judged_by_it_on_every_partition(lab: Lab) -> None:
    await lab.start_worker("one")
    await lab.start_worker("two")
    ids = [lab.execution_on(partition) for partition in range(lab.partitions)]
    await asyncio.gather(*(lab.ask(name, k.StartExecution(agent="bot")) for name in ids))
    await lab.publish_tool({"name": "ping"})

    for effect, last in (("allow", "ToolCallReleased"), ("deny", "ToolCallDenied")):
        rule = {"id": "r", "match": {"tools": ["ping"]}, "then": effect}
        await lab.publish_policy({"policy": "p", "scope": {"tenant": "*"}, "rules": [rule]})
        command = k.ProposeToolCall(call_id=effect, tool="ping", arguments="{}")
        traces = await asyncio.gather(*(lab.ask(name, command) for name in ids))
        assert [trace[-1].type for trace in traces] == [last] * len(ids)


async def test_agent_of_another_name_finds_nothing(lab: Lab) -> None:
    await lab.start_worker("w")
    await lab.ask("x", k.StartExecution(agent="bot"))
    other = AGENT.model_copy(update={"subject": "mallory", "agent": "other"})

    trace = await lab.ask("x", k.ProposeToolCall(call_id="c", tool="read_file", arguments="{}"), other)

    assert body_of(trace, "CommandRefused").code == "not_found"
