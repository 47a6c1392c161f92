"""Commands that end who decides them are tried in a child, and a repeat of one is answered by its first trace."""

import asyncio
import json
from typing import Any

import pytest

from log.places import TopicPartition
from ops.checker import check, read_log
from schemas import commands as k
from schemas.envelope import Draft
from schemas.events.log import WriterAlive
from schemas.ids import definition_key
from services.domain import publishing
from services.domain.execution import execution
from services.runtime.rounds import ABANDON_AFTER_DEATHS
from services.runtime.trial import ForkedTrial
from tests.runtime.lab import TENANT, TENANTS_OLGA, Lab, body_of, types
from tests.runtime.test_poison import IN_A_BATCH, dead_writers, deadly, deadly_to_read


async def test_case_25_poison_is_tried_in_a_child_and_ends_one_writer_alone(
    memory_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first one ends of it, in a batch; the others that would have are children."""
    lab = memory_lab
    deaths = deadly(monkeypatch)
    poison = await lab.send("x", k.StartExecution(agent="poison"))
    after = await lab.send("y", k.StartExecution(agent="bot"))
    await lab.start_worker("one", trial=ForkedTrial())

    assert types(await lab.trace("y", after)) == ["ExecutionStarted"]
    abandoned = body_of(await lab.trace("x", poison), "CommandAbandoned")
    assert (abandoned.attempts, abandoned.trials) == (ABANDON_AFTER_DEATHS, ABANDON_AFTER_DEATHS)
    assert len(deaths) == IN_A_BATCH
    assert check(await read_log(lab.log), topics=lab.log.topics) == []


async def test_case_25_trials_after_writers_that_ended_are_told_apart_from_them(
    memory_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = memory_lab
    deadly(monkeypatch)
    poison = await lab.send("x", k.StartExecution(agent="poison"))
    await dead_writers(lab, attempting=0, deaths=2)
    await lab.start_worker("one", trial=ForkedTrial())

    abandoned = body_of(await lab.trace("x", poison), "CommandAbandoned")
    assert (abandoned.attempts, abandoned.trials) == (ABANDON_AFTER_DEATHS, 1)
    assert check(await read_log(lab.log), topics=lab.log.topics) == []


async def test_case_25_poison_that_kills_whoever_reads_it_ends_one_writer_alone(
    memory_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, reads = memory_lab, deadly_to_read(monkeypatch)
    await lab.send("x", k.StartExecution(agent="poison"))
    after = await lab.send("y", k.StartExecution(agent="bot"))
    await lab.start_worker("one", trial=ForkedTrial())

    assert types(await lab.trace("y", after)) == ["ExecutionStarted"]
    (letter,) = await lab.raws(TopicPartition(lab.log.topics.dead_letters, 0))
    assert dict(letter.headers)["placet_reason"] == b"abandoned"
    assert len(reads) == IN_A_BATCH
    assert check(await read_log(lab.log), topics=lab.log.topics) == []


async def test_only_what_stood_there_when_a_writer_claimed_is_tried_alone(memory_lab: Lab) -> None:
    """After restarts without commands nothing is suspected of them."""
    lab = memory_lab
    for name in ("one", "two", "three"):
        running = await lab.start_worker(name)
        async with asyncio.timeout(20):
            while not running.worker.settled:
                await asyncio.sleep(0.01)
        if name != "three":
            await running.stop()
    (started,) = await lab.ask("x", k.StartExecution(agent="bot"))

    facts = await lab.facts(lab.events_tp("x"))
    tried = [e.body.attempting for e in facts if isinstance(e.body, WriterAlive)]
    assert started.meta.command_offset not in tried


@pytest.mark.parametrize("start_first", [True, False])
async def test_case_25_repeat_of_an_abandoned_command_is_answered_by_its_first_trace(
    memory_lab: Lab, monkeypatch: pytest.MonkeyPatch, start_first: bool
) -> None:
    lab, decide, deaths = memory_lab, execution.decide, list[int]()

    def dies(state: Any, command: Any, ctx: Any) -> Any:
        if getattr(command, "reason", "") == "poison":
            deaths.append(ctx.now_ms)
            raise RuntimeError("this command kills its writer")
        return decide(state, command, ctx)

    monkeypatch.setattr(execution, "decide", dies)
    if start_first:
        await lab.send("x", k.StartExecution(agent="bot"))
    poison = k.PauseExecution(reason="poison")
    name = await lab.send("x", poison, lab.olga, command_id="again")
    running = await lab.start_worker("one", trial=ForkedTrial())
    first = await lab.trace("x", name)
    died = len(deaths)
    await lab.send("x", poison, lab.olga, command_id="again")
    await lab.ask("x", k.StartExecution(agent="bot"))
    # Nor where it is read back from the log.
    await running.stop()
    await lab.start_worker("two", trial=ForkedTrial())
    await lab.send("x", poison, lab.olga, command_id="again")
    await lab.ask("x", k.CancelExecution(), lab.olga)

    assert types(first) == ["CommandAbandoned"]
    assert await lab.trace("x", name) == first
    assert len(deaths) == died
    assert check(await read_log(lab.log), topics=lab.log.topics) == []


async def test_case_25_definition_that_is_given_up_stands_in_the_log_as_the_checker_wants_it(
    memory_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, decide = memory_lab, publishing.decide

    def dies(current: Any, key: bytes, body: Any, actor: Any) -> Any:
        if body.name == "poison":
            raise RuntimeError("this command kills its writer")
        return decide(current, key, body, actor)

    monkeypatch.setattr(publishing, "decide", dies)
    await lab.start_worker("one", trial=ForkedTrial())
    body = k.PublishTool(name="poison", definition=json.dumps({"name": "poison"}))
    draft = Draft(body, TENANTS_OLGA, "poison", definition_key(TENANT, "tool", "poison"))
    await lab.log.send(TopicPartition(lab.log.topics.definition_commands, 0), lab.signer.sign([draft])[0])
    await lab.publish_tool({"name": "read_file"})

    facts = await lab.facts(TopicPartition(lab.log.topics.definitions, 0))
    abandoned = body_of([event for event in facts if event.meta.command_id == "poison"], "CommandAbandoned")
    assert (abandoned.attempts, abandoned.trials) == (ABANDON_AFTER_DEATHS, ABANDON_AFTER_DEATHS)
    assert check(await read_log(lab.log), topics=lab.log.topics) == []
