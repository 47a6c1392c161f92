"""A recorded fact that today's code cannot fold: set aside and told loudly, and everything else goes on."""

import asyncio
import logging
from typing import Any, NoReturn

import pytest

from log.errors import LogFromNewerVersion
from log.places import TopicPartition
from schemas import commands as k
from schemas.events.definitions import ToolPublished
from schemas.events.executions import ExecutionPaused
from schemas.events.log import WriterAlive
from schemas.headers import event_record
from schemas.ids import definition_key
from schemas.message import Message
from schemas.record import EventMeta, OutRecord, RawRecord
from schemas.term import TermRule
from services.domain import publishing as domain_definitions
from services.domain.execution.evolve import evolve
from services.domain.tools import tool_from_definition
from services.runtime import executions_partition, snapshots
from services.runtime.claim import log_key
from services.runtime.executions_partition import ExecutionsPartition
from services.runtime.ledger import Ledger
from services.runtime.snapshot_state import encode_ledger, restore_ledger
from tests.runtime.lab import TENANT, Lab, body_of, types

READ = k.ProposeToolCall(call_id="c", tool="read_file", arguments="{}")


def forget_how_to_read(patch: pytest.MonkeyPatch, name: str) -> None:
    """From now on the code is one that cannot read this tool's definition."""

    def narrower(tool_name: str, *rest: Any) -> Any:
        if tool_name == name:
            raise KeyError("a word that was taken back")
        return tool_from_definition(tool_name, *rest)

    patch.setattr(domain_definitions, "tool_from_definition", narrower)


def forget_how_to_fold(patch: pytest.MonkeyPatch, event: type) -> None:
    """From now on the code is one that cannot fold this event of an execution."""

    def narrower(state: Any, body: Any, at_ms: int) -> Any:
        if isinstance(body, event):
            raise KeyError("a word that was taken back")
        return evolve(state, body, at_ms)

    patch.setattr(executions_partition, "evolve", narrower)


async def test_definition_that_cannot_be_read_holds_its_calls_and_stops_no_decider(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = await lab.start_worker("one")
    await lab.publish_basics()
    await lab.publish_tool({"name": "read_mail", "annotations": {"readOnlyHint": True}})
    await first.stop()
    forget_how_to_read(monkeypatch, "read_file")

    await lab.start_worker("two")
    await lab.ask("x", k.StartExecution(agent="bot"))
    held = await lab.ask("x", READ)
    released = await lab.ask("x", READ.model_copy(update={"call_id": "d", "tool": "read_mail"}))
    await lab.publish_tool({"name": "later"})

    assert types(held)[-1] == "HoldOpened"
    assert "a word that was taken back" in body_of(held, "PolicyVerdictIssued").detail
    assert types(released)[-1] == "ToolCallReleased"
    told = [record for record in caplog.records if record.levelno == logging.CRITICAL]
    assert told
    assert "ToolPublished of acme/tool/read_file at offset" in told[0].getMessage()


async def test_definition_of_a_newer_version_met_while_running_holds_its_calls_from_then_on(lab: Lab) -> None:
    """What another version of the product published has a word that this one does not know."""
    await lab.start_worker("one")
    await lab.publish_basics()
    await lab.ask("x", k.StartExecution(agent="bot"))
    assert types(await lab.ask("x", READ))[-1] == "ToolCallReleased"
    tp = TopicPartition(lab.log.topics.definitions, 0)
    claim = [event for event in await lab.facts(tp) if event.type == "WriterClaimed"][-1]
    newer = ToolPublished(
        name="read_file",
        version=9,
        tool_version="f" * 64,
        definition='{"name":"read_file","future":1}',
        by="o",
    )
    meta = EventMeta("newer", claim.meta.at_ms, claim.offset, 9, "newer", "", TENANT)
    key = definition_key(TENANT, "tool", "read_file")

    offset = await (await lab.log.appender()).append(tp, [event_record(newer, meta, key)])
    await lab.adopted(offset)
    held = await lab.ask("x", READ.model_copy(update={"call_id": "d"}))

    assert types(held)[-1] == "HoldOpened"
    assert "unknown field 'future'" in body_of(held, "PolicyVerdictIssued").detail


async def test_execution_with_a_fact_that_cannot_be_folded_is_refused_and_the_partition_goes_on(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = await lab.start_worker("one")
    other = next(f"y{i}" for i in range(1_000) if lab.partition_of(f"y{i}") == lab.partition_of("x"))
    for execution_id in ("x", other):
        await lab.ask(execution_id, k.StartExecution(agent="bot"))
    await lab.ask("x", k.PauseExecution(), lab.olga)
    await first.stop()
    forget_how_to_fold(monkeypatch, type(body_of(await lab.facts(lab.events_tp("x")), "ExecutionPaused")))

    await lab.start_worker("two")
    refused = body_of(await lab.ask("x", k.ResumeExecution(), lab.olga), "CommandRefused")
    again = await lab.ask("x", k.StartExecution(agent="bot"))

    assert refused.code == "unavailable"
    assert "an operator must inspect" in refused.detail
    assert body_of(again, "CommandRefused").code == "unavailable"
    assert types(await lab.ask(other, k.CompleteExecution())) == ["ExecutionCompleted"]
    assert any("ExecutionPaused of acme/main/x" in record.getMessage() for record in caplog.records)


async def test_want_of_memory_sets_no_fact_aside() -> None:
    """It passes, and a snapshot would keep what it made of the execution."""

    class Starved(ExecutionsPartition):
        def apply(self, event: Any, of: Any = None) -> NoReturn:
            raise MemoryError

    starved = Starved(lambda: None)  # type: ignore[arg-type, return-value]
    ledger = Ledger(starved, TermRule(0))
    meta = EventMeta("e", 1, 0, 1, "c", "", TENANT)
    record = event_record(ExecutionPaused(reason="", by="olga"), meta, b"acme/main/x")

    with pytest.raises(MemoryError):
        ledger.read(RawRecord(0, 1, 1, record.key, record.value, record.headers))
    assert not starved.unreadable


async def test_execution_whose_start_cannot_be_folded_is_not_started_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await lab.start_worker("one")
    await lab.ask("x", k.StartExecution(agent="bot"))
    await first.stop()

    def refusing(*_: Any) -> Any:
        raise KeyError("a word that was taken back")

    monkeypatch.setattr(executions_partition, "start", refusing)
    await lab.start_worker("two")

    assert body_of(await lab.ask("x", k.StartExecution(agent="bot")), "CommandRefused").code == "unavailable"


async def test_snapshot_keeps_what_was_set_aside(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "WORTHWHILE_EVENTS", 1)
    first = await lab.start_worker("one")
    await lab.ask("x", k.StartExecution(agent="bot"))
    await first.stop()
    executions = ExecutionsPartition(lambda: None)  # type: ignore[arg-type, return-value]
    executions.unreadable[lab.key_of("x")] = "because"

    restored = ExecutionsPartition(lambda: None)  # type: ignore[arg-type, return-value]
    restore_ledger(encode_ledger(Ledger(executions), executions), Ledger(restored), restored)

    assert restored.unreadable == executions.unreadable


def of_a_newer_version(body: Any, meta: EventMeta, key: bytes) -> OutRecord:
    """A fact as a version writes it that has more schemas than this one."""
    record = event_record(body, meta, key)
    return record._replace(value=b"\0" + (9_999).to_bytes(4, "big") + record.value[5:])


async def until_ended(lab: Lab) -> None:
    """Start a worker and see it end."""
    worker = await lab.start_worker("two")
    async with asyncio.timeout(20):
        await asyncio.gather(*worker.tasks)


async def claimed(lab: Lab, tp: TopicPartition) -> Any:
    """The claim in force."""
    return [event for event in await lab.facts(tp) if event.type == "WriterClaimed"][-1]


async def test_fact_of_a_newer_version_leaves_its_execution_undecided_and_the_partition_going(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """Passed over, a pause that only the newer version can read would leave the run going."""
    first = await lab.start_worker("one")
    other = next(f"y{i}" for i in range(1_000) if lab.partition_of(f"y{i}") == lab.partition_of("x"))
    for execution_id in ("x", other):
        await lab.ask(execution_id, k.StartExecution(agent="bot"))
    await first.stop()
    tp = lab.events_tp("x")
    claim = await claimed(lab, tp)
    meta = EventMeta("newer", claim.meta.at_ms, claim.offset, 2, "newer", "", TENANT)
    pause = ExecutionPaused(reason="", by="olga")
    await (await lab.log.appender()).append(tp, [of_a_newer_version(pause, meta, lab.key_of("x"))])

    await lab.start_worker("two")
    refused = body_of(await lab.ask("x", READ), "CommandRefused")

    assert refused.code == "unavailable"
    assert types(await lab.ask(other, k.CompleteExecution())) == ["ExecutionCompleted"]
    assert any("acme/main/x" in record.getMessage() for record in caplog.records if record.levelno >= 50)


@pytest.mark.parametrize("topic", ["executions", "definitions"])
async def test_fact_of_a_newer_version_that_all_others_depend_on_ends_the_worker_in_one_sentence(
    lab: Lab, topic: str
) -> None:
    first = await lab.start_worker("one")
    await lab.publish_basics()
    await lab.ask("x", k.StartExecution(agent="bot"))
    await first.stop()
    body: Message = WriterAlive(commands_through=0, attempting=-1)
    if topic == "executions":
        tp = lab.events_tp("x")
        key = log_key(tp.partition)
    else:
        tp = TopicPartition(lab.log.topics.definitions, 0)
        key = definition_key(TENANT, "tool", "read_file")
        body = ToolPublished(name="read_file", version=9, tool_version="f" * 64, definition="{}", by="o")
    claim = await claimed(lab, tp)
    meta = EventMeta("newer", claim.meta.at_ms, claim.offset, 9, "newer", "", TENANT)
    await (await lab.log.appender()).append(tp, [of_a_newer_version(body, meta, key)])

    with pytest.raises(LogFromNewerVersion, match="run the version that wrote it"):
        await until_ended(lab)


async def test_foreign_record_without_the_term_in_force_changes_nothing(lab: Lab) -> None:
    await lab.start_worker("one")
    await lab.publish_basics()
    await lab.ask("x", k.StartExecution(agent="bot"))
    tp, appender = lab.events_tp("x"), await lab.log.appender()
    claim = await claimed(lab, tp)
    for term in (-1, claim.offset + 1_000):
        meta = EventMeta("foreign", claim.meta.at_ms, term, 2, "foreign", "", TENANT)
        pause = ExecutionPaused(reason="", by="olga")
        await appender.append(tp, [of_a_newer_version(pause, meta, lab.key_of("x"))])

    await lab.workers[0].kill()
    await lab.start_worker("two")

    assert types(await lab.ask("x", READ))[-1] == "ToolCallReleased"
