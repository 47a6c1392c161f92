"""A log that is signed from somewhere on, and snapshots that strangers write beside it."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.key_files import SigningKey
from log.places import TopicPartition
from ops.checker import check_log
from ops.install import install_keys
from ops.signing_start import install_signed_from
from schemas import commands as k
from schemas.event_signatures import (
    HEADER,
    OFF,
    REQUIRED,
    EventSigner,
    SignedText,
    event_signer_of,
    load_signatures,
    signs,
)
from schemas.record import OutRecord
from schemas.signed_from import SIGNED_FROM, read_signed_from
from schemas.term import rule_of
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.runtime import snapshots
from services.runtime.executions_partition import ExecutionsPartition
from services.runtime.ledger import Ledger
from services.runtime.snapshots import Snapshots
from tests.log.logs import PARTITIONS, KafkaWorld, installation
from tests.runtime.lab import Lab, said, types
from tests.runtime.test_snapshots import folded, restart, some_history
from tests.runtime.test_writer_fencing import zombie_record


async def forge(lab: Lab, tp: TopicPartition) -> int:
    """A pause in the term in force, by who may produce and has no decider's key; where it stands."""
    term = (await lab.facts(tp))[-1].meta.term
    return await (await lab.log.appender()).append(tp, [zombie_record(lab, "x", term, "forged")])


class ForAnotherPlace(EventSigner):
    """A decider's pen, as what it wrote looks that was moved here from another partition."""

    def sign_text(self, context: bytes, text: str) -> SignedText:
        return EventSigner.sign_text(self, context + b"1", text)


async def test_case_32_decider_that_starts_believes_no_forged_snapshot(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "WORTHWHILE_EVENTS", 1)
    lab.sign(tmp_path)
    assert lab.event_signer is not None
    assert lab.signatures is not None
    await some_history(lab)
    await restart(lab, "two")
    tp = lab.events_tp("x")
    await forge(lab, tp)
    # What a decider would believe that checks no signatures: the execution is paused.
    state = await folded(lab, tp, (await lab.log.bounds(tp))[1])
    assert state[1].live[lab.key_of("x")].state.lifecycle == "paused"
    stranger = Ed25519PrivateKey.generate()
    forgers = {
        "unsigned": None,
        "a key of its own": EventSigner(SigningKey("stranger", stranger)),
        "under a decider's name": EventSigner(SigningKey(lab.event_signer.key.kid, stranger)),
        "a decider's for another place": ForAnotherPlace(lab.event_signer.key),
    }
    for name, pen in forgers.items():
        await Snapshots(lab.log, tp, pen).save(*state, name)
    for text in (b"[" * 100_000, b'{"text":1,"kid":[],"signature":null}', b"\xff"):
        await lab.log.send(
            Snapshots(lab.log, tp).tp, OutRecord(f"manifest/{tp.partition}".encode(), text, ())
        )

    rules = Definitions(policies=PolicySet())
    executions = ExecutionsPartition(lambda: rules)
    ledger = Ledger(executions, rule_of(lab.signatures, tp.topic))
    assert await Snapshots(lab.log, tp, keys=lab.signatures.keys).restore(ledger, executions), (
        "a decider's is there"
    )
    assert executions.live[lab.key_of("x")].state.lifecycle == "running"
    await lab.start_worker("three")
    trace = await lab.ask("x", k.ResumeExecution(), actor=lab.olga)

    assert said(trace[0]).code == "not_open", "the forged pause would have made this resume succeed"
    assert "ExecutionPaused" not in types(await lab.facts(tp))


@pytest.mark.broker
async def test_case_32_upgrade_keeps_what_was_unsigned_and_owes_signatures_from_there_on(
    kafka_log_world: KafkaWorld, tmp_path: Path, seed: int
) -> None:
    log = kafka_log_world.log
    config = installation(kafka_log_world, tmp_path)
    install_keys(config.directory)
    written = config.directory.keys / SIGNED_FROM
    settings = {"keys_dir": str(config.directory.keys)}
    lab = Lab(log, PARTITIONS, random.Random(seed))
    tp = lab.events_tp("x")
    try:
        hold = await some_history(lab)
        before = types(await lab.facts(tp))
        ends = {
            topic: tuple([(await log.bounds(TopicPartition(topic, n)))[1] for n in range(count)])
            for topic, count in ((log.topics.executions, PARTITIONS), (log.topics.definitions, 1))
        }
        await asyncio.to_thread(install_signed_from, replace(config, log_signatures=OFF))
        owed = read_signed_from(written)
        assert owed == {topic: ((0, 0),) * len(of) for topic, of in ends.items()}, "nothing is owed"

        await asyncio.to_thread(install_signed_from, config)

        owed = read_signed_from(written)
        assert owed == {topic: tuple((0, 0, end) for end in of) for topic, of in ends.items()}
        text = written.read_bytes()
        forged = [await forge(lab, tp)]
        lab.event_signer, lab.signatures = event_signer_of(settings), load_signatures(settings)
        running = await lab.start_worker("new")
        trace = await lab.ask(
            "x", k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest), lab.rita
        )
        assert types(trace) == ["DecisionRecorded", "ToolCallReleased"], (
            "what was held unsigned can be decided"
        )
        await running.stop()
        forged.append(await forge(lab, tp))
        # Every later start runs the installation again.
        await asyncio.to_thread(install_signed_from, config)

        assert written.read_bytes() == text
        lab.signatures = load_signatures(settings)
        counted = await lab.facts(tp)
        assert types(counted)[: len(before)] == before
        assert "ExecutionPaused" not in types(counted)
        later = [raw for raw in await lab.raws(tp) if raw.offset >= ends[tp.topic][tp.partition]]
        unsigned = [raw.offset for raw in later if HEADER not in dict(raw.headers)]
        assert unsigned == forged
    finally:
        await lab.close()


@pytest.mark.broker
async def test_case_32_log_goes_on_after_signing_was_off_and_what_was_forged_before_never_counts(
    kafka_log_world: KafkaWorld, tmp_path: Path, seed: int
) -> None:
    log = kafka_log_world.log
    config = installation(kafka_log_world, tmp_path)
    install_keys(config.directory)
    keys = {"keys_dir": str(config.directory.keys)}
    lab = Lab(log, PARTITIONS, random.Random(seed))
    tp = lab.events_tp("x")

    async def switch(word: str) -> None:
        await asyncio.to_thread(install_signed_from, replace(config, log_signatures=word))
        settings = keys | {"log_signatures": word}
        lab.signatures = load_signatures(settings)
        lab.event_signer = event_signer_of(settings) if signs(settings) else None

    try:
        await switch(REQUIRED)
        await some_history(lab)
        await forge(lab, tp)
        await switch(OFF)
        off_at = (await log.bounds(tp))[1]
        running = await lab.start_worker("unsigned")
        assert types(await lab.ask("x", k.PauseExecution(reason="r"), actor=lab.olga)) == [
            "ExecutionPaused"
        ], "the pause that was forged before does not count"
        await running.stop()
        on_at = (await log.bounds(tp))[1]
        await switch(REQUIRED)
        entries = read_signed_from(config.directory.keys / SIGNED_FROM)[tp.topic]
        assert entries[tp.partition] == (0, off_at, on_at)
        await lab.start_worker("signed")
        assert types(await lab.ask("x", k.ResumeExecution(), actor=lab.olga)) == ["ExecutionResumed"]
        assert types(await lab.facts(tp)).count("ExecutionPaused") == 1
    finally:
        await lab.close()


async def test_batch_displaced_by_a_deposed_writers_backlog_is_told_once_and_is_no_violation(
    lab: Lab, tmp_path: Path
) -> None:
    lab.sign(tmp_path)
    assert lab.event_signer is not None
    await some_history(lab)
    tp = lab.events_tp("x")
    await restart(lab, "two")
    claim = (await lab.facts(tp))[-1].meta.term
    end = (await lab.log.bounds(tp))[1]
    # What the writer before had on its way lands late, before the batch that the writer in force signed for here.
    backlog = [zombie_record(lab, "x", claim - 1, f"late {number}") for number in range(275)]
    await lab.append(tp, backlog)
    batch = [zombie_record(lab, "x", claim, f"displaced {number}") for number in range(40)]
    await lab.append(tp, batch, base=end)

    notes: list[str] = []
    _, found = await check_log(lab.log, signatures=lab.signatures, note=notes.append)
    assert [violation for violation in found if violation.invariant == "I7"] == []
    assert len(notes) == 1
    assert f"{tp}: 40 records" in notes[0]
    forged = await forge(lab, tp)
    _, found = await check_log(lab.log, signatures=lab.signatures)
    assert [violation.where for violation in found if violation.invariant == "I7"] == [f"{tp}@{forged}"]
