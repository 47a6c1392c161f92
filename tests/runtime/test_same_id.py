"""A command id holds for a key: the same id on another key of the partition, or of a tenant, is another command.

Services choose their ids. So whatever was answered on one key says nothing of another, before and after a restart,
and nobody's refusals push out what is remembered of others.
"""

from __future__ import annotations

from itertools import islice

import pytest

from log.places import TopicPartition
from ops.checker import check, read_log
from schemas import commands as k
from schemas.actor import Actor
from schemas.envelope import Draft
from schemas.events import executions as x
from schemas.ids import execution_key
from schemas.message import Message
from schemas.record import Event, EventMeta
from schemas.refusals import Refusal
from schemas.topics import partition_of
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.runtime import executions_partition, snapshots
from services.runtime.executions_partition import ExecutionsPartition
from services.runtime.ledger import Ledger
from services.runtime.snapshot_state import encode_ledger, restore_ledger
from tests.runtime.lab import AGENT, PROJECT, Lab, types

GHOST, RUN = b"acme/main/ghost", b"acme/main/run"
PROPOSED = k.ProposeToolCall(call_id="c1", tool="read_file", arguments="{}")
STRANGER = AGENT.model_copy(update={"tenant": "evil"})


def neighbours(lab: Lab, actor: Actor, partition: int = 0) -> list[bytes]:
    """Keys of executions of an actor, all of one partition."""
    keys = (execution_key(actor.tenant, PROJECT, f"n{number}") for number in range(10_000))
    return list(islice((key for key in keys if partition_of(key, lab.partitions) == partition), 4))


async def send(lab: Lab, key: bytes, body: Message, command_id: str, actor: Actor = AGENT) -> None:
    (record,) = lab.signer.sign([Draft(body, actor, command_id, key)])
    await lab.log.send(TopicPartition(lab.log.topics.commands, partition_of(key, lab.partitions)), record)


async def answers(lab: Lab, key: bytes, command_id: str) -> list[str]:
    """What a command left on a key, once all that was sent before now is decided."""
    name = f"end-{sum(lab.sent.values())}"
    execution_id = next(
        f"end{number}"
        for number in range(10_000)
        if lab.partition_of(f"end{number}") == partition_of(key, lab.partitions)
    )
    await lab.ask(execution_id, k.PauseExecution(reason=""), command_id=name)
    facts = await lab.facts(lab.events_tp(execution_id))
    return types([fact for fact in facts if (fact.key, fact.meta.command_id) == (key, command_id)])


async def test_case_26_command_id_that_was_refused_where_nothing_runs_is_another_command_elsewhere(
    lab: Lab,
) -> None:
    await lab.start_worker("one")
    ghost, run, other, _ = neighbours(lab, AGENT)
    theirs = neighbours(lab, STRANGER)[0]
    for key, actor in ((run, AGENT), (other, AGENT), (theirs, STRANGER)):
        await send(lab, key, k.StartExecution(agent="bot"), "start", actor)
    await send(lab, ghost, PROPOSED, "same")
    await send(lab, run, PROPOSED, "same")
    await send(lab, other, PROPOSED.model_copy(update={"reason": "another value"}), "same")
    await send(lab, theirs, PROPOSED, "same", STRANGER)

    assert await answers(lab, ghost, "same") == ["CommandRefused"]
    for key in (run, other, theirs):
        assert (await answers(lab, key, "same"))[:1] == ["ToolCallProposed"], key
    assert check(await read_log(lab.log), topics=lab.log.topics) == []


@pytest.mark.parametrize("worthwhile", [1, 10**9], ids=["from a snapshot", "from the log"])
async def test_case_26_restarted_writer_tells_repeats_by_their_keys_as_the_first_did(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, worthwhile: int
) -> None:
    monkeypatch.setattr(snapshots, "WORTHWHILE_EVENTS", worthwhile)
    first = await lab.start_worker("one")
    ghost, run, later, _ = neighbours(lab, AGENT)
    await send(lab, run, k.StartExecution(agent="bot"), "start")
    await send(lab, ghost, PROPOSED, "same")
    assert await answers(lab, ghost, "same") == ["CommandRefused"]
    await first.stop()
    # The first that reads it back may leave a snapshot for the second.
    await (await lab.start_worker("two")).stop()
    await lab.start_worker("three")

    await send(lab, later, k.StartExecution(agent="bot"), "start")
    for key in (ghost, run, later):
        await send(lab, key, PROPOSED, "same")
    assert await answers(lab, ghost, "same") == ["CommandRefused"], "a repeat leaves no second trace"
    for key in (run, later):
        assert (await answers(lab, key, "same"))[:1] == ["ToolCallProposed"], key
    assert check(await read_log(lab.log), topics=lab.log.topics) == []


async def test_case_26_command_id_that_was_refused_after_the_end_of_a_run_is_another_command_elsewhere(
    memory_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ended long ago keeps only its key."""
    lab = memory_lab
    monkeypatch.setattr(executions_partition, "RECENT_MAX", 0)
    await lab.start_worker("one")
    ended, run, *_ = neighbours(lab, AGENT)
    for key in (ended, run):
        await send(lab, key, k.StartExecution(agent="bot"), "start")
    await send(lab, ended, k.CompleteExecution(), "complete")
    await send(lab, ended, PROPOSED, "same")
    await send(lab, run, PROPOSED, "same")

    assert await answers(lab, ended, "same") == ["CommandRefused"]
    assert (await answers(lab, run, "same"))[:1] == ["ToolCallProposed"]
    assert check(await read_log(lab.log), topics=lab.log.topics) == []


def fact(body: Message, key: bytes, command_id: str, digest: str = "one") -> Event:
    tenant = key.decode().split("/")[0]
    return Event(body, EventMeta("e", 0, 0, 1, command_id, digest, tenant), key, 0, 1)


def no(code: Refusal = Refusal.NOT_FOUND, by: str = "bot") -> x.CommandRefused:
    return x.CommandRefused(code=code, command="ProposeToolCall", subject_id="", detail="", by=by)


def started() -> x.ExecutionStarted:
    return x.ExecutionStarted(agent="bot", user="", workspace="", request="", context="{}", by="bot")


def executions() -> ExecutionsPartition:
    rules = Definitions(policies=PolicySet())
    return ExecutionsPartition(lambda: rules)


def test_seen_command_refused_before_the_run_began_is_a_repeat_for_as_long_as_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executions_partition, "ORPHANS_MAX", 2)
    partition = executions()
    partition.apply(fact(no(), RUN, "early"))
    partition.apply(fact(no(Refusal.IDEMPOTENCY_KEY_REUSED), RUN, "early", "two"))
    partition.apply(fact(started(), RUN, "start"))
    for number in range(9):
        partition.apply(fact(no(), GHOST, f"c{number}"))

    assert [partition.seen(RUN, "early", digest) for digest in ("one", "two", "three")] == [
        "repeated",
        "repeated",
        "reused",
    ]
    assert partition.seen(GHOST, "c8", "one") == "repeated"


def test_seen_refusals_of_one_who_asks_push_out_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions_partition, "ORPHANS_MAX", 2)
    partition = executions()
    partition.apply(fact(no(), GHOST, "mine"))
    for number in range(9):
        partition.apply(fact(no(by="rival"), GHOST, f"rival-{number}"))
        partition.apply(fact(no(), b"evil/main/ghost", f"evil-{number}"))

    assert partition.seen(GHOST, "mine", "one") == "repeated"
    assert partition.seen(GHOST, "mine", "two") == "reused"
    assert partition.seen(GHOST, "rival-6", "one") == "new"
    assert partition.seen(GHOST, "rival-7", "one") == "repeated"
    for number in range(2):
        partition.apply(fact(no(), GHOST, f"own-{number}"))
    assert partition.seen(GHOST, "mine", "one") == "new"


def test_restored_partition_tells_repeats_by_their_keys() -> None:
    partition = executions()
    for key in (GHOST, b"evil/main/ghost"):
        partition.apply(fact(no(), key, "same"))
    restored = executions()
    restore_ledger(encode_ledger(Ledger(partition), partition), Ledger(restored), restored)

    assert restored.orphans == partition.orphans
    assert restored.seen(GHOST, "same", "one") == "repeated"
    assert restored.seen(RUN, "same", "one") == "new"
