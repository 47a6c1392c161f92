"""A log whose facts are shorter than what was counted of them is refused before anything is decided."""

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.key_files import DECIDER_KEY, DECIDERS, SigningKey, load_published
from host.public_keys import PublicKeyFile
from log import completeness
from log.completeness import check_complete
from log.errors import ClaimUnknown, FactsDeleted, LogTruncated
from log.places import TopicPartition
from schemas.event_signatures import ANYWHERE, EventSigner, LogSignatures
from schemas.events.log import WriterClaimed
from schemas.headers import event_record
from schemas.record import EventMeta, OutRecord
from schemas.trust import TrustCheckpoint, TrustPart, trust_record
from tests.log.logs import World

FACT = OutRecord(b"k", b"v", ())


async def checkpoint(world: World, through_offset: int, **more: Any) -> TrustCheckpoint:
    log = world.log
    found: dict[str, Any] = {
        "partition": 0,
        "through_offset": through_offset,
        "record_id": "r",
        "term": 0,
        "topic_id": await log.topic_id(log.topics.executions),
        "at_ms": 1,
        "evidence": 0,
        "unreadable": 0,
        "resume_offset": 0,
        "resume_term": 0,
    }
    return TrustCheckpoint(**{**found, **more})


async def counted(world: World, through_offset: int, **more: Any) -> None:
    record = trust_record(await checkpoint(world, through_offset, **more))
    await world.log.send(TopicPartition(world.log.topics.trust, 0), record)


async def facts(world: World, count: int) -> TopicPartition:
    tp = TopicPartition(world.log.topics.executions, 0)
    for _ in range(count):
        await world.log.send(tp, FACT)
    return tp


async def test_log_that_nobody_has_counted_is_taken(world: World) -> None:
    await facts(world, 2)
    await check_complete(world.log)


async def test_log_that_holds_what_was_counted_is_taken(world: World) -> None:
    await facts(world, 3)
    await counted(world, 1)
    await counted(world, 2)
    await check_complete(world.log)


async def test_facts_that_end_before_what_was_counted_are_refused_with_the_partition(world: World) -> None:
    tp = await facts(world, 2)
    await counted(world, 1)
    await counted(world, 5)
    with pytest.raises(LogTruncated, match=r"Offset 5 of .*holds 0 up to 2: it was truncated") as refused:
        await check_complete(world.log)
    assert refused.value.tp == tp


async def test_advice_to_who_decides_on_a_cut_log_is_to_restore_it_and_to_remove_nothing(
    world: World,
) -> None:
    """What was counted of it and the snapshots are all that names what is missing."""
    await facts(world, 2)
    await counted(world, 5)
    with pytest.raises(LogTruncated) as refused:
        await check_complete(world.log)
    advice = str(refused.value).partition("recreated. ")[2]
    assert advice.startswith("Restore all its topics from a backup of one moment, and remove nothing")
    assert "rebuild" not in advice


async def test_partition_that_is_empty_though_it_was_counted_is_refused(world: World) -> None:
    await counted(world, 0)
    with pytest.raises(LogTruncated):
        await check_complete(world.log)


@pytest.mark.parametrize("before", [1, 2])
async def test_facts_whose_first_ones_were_deleted_are_refused_though_nobody_has_counted_them(
    world: World, before: int
) -> None:
    """Also where none is left, as a retention leaves it."""
    tp = await facts(world, 2)
    await world.delete_before(tp, before)
    with pytest.raises(FactsDeleted, match=f"begins at offset {before}, .* Remove nothing"):
        await check_complete(world.log)


async def test_count_of_another_log_says_nothing(world: World) -> None:
    await counted(world, 5, topic_id="another")
    await check_complete(world.log)


async def test_checkpoint_is_found_behind_many_records(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completeness, "LOOK_BACK", 2)
    await counted(world, 5)
    part = TrustPart(
        tenant="acme",
        agent="a",
        tool="t",
        partition=0,
        last_evidence_at_ms=1,
        through_offset=5,
        record_id="r",
        term=0,
        topic_id="x",
    )
    tp = TopicPartition(world.log.topics.trust, 0)
    for _ in range(6):
        await world.log.send(tp, trust_record(part))
    await world.log.send(tp, OutRecord(b"_log/0", b"no trust", ()))
    with pytest.raises(LogTruncated):
        await check_complete(world.log)


async def claimed(world: World, *keys: SigningKey | None) -> TopicPartition:
    """A chain of claims, each signed by a key; None: by nobody."""
    tp = TopicPartition(world.log.topics.executions, 0)
    for number, key in enumerate(keys):
        body = WriterClaimed(claim_id=f"c{number}", after=number - 1, worker="w")
        record = event_record(body, EventMeta(f"e{number}", 0, number - 1, 0, "c", "", ""), b"_log/0")
        records = [record] if key is None else EventSigner(key).sign(*tp, ANYWHERE, [record])
        await (await world.log.appender()).append(tp, records)
    return tp


async def test_claim_that_was_counted_and_whose_key_was_lost_is_refused_by_its_name(
    world: World, tmp_path: Path
) -> None:
    key, lost = (
        load_published(tmp_path, DECIDER_KEY, DECIDERS),
        SigningKey("lost", Ed25519PrivateKey.generate()),
    )
    signatures = LogSignatures(PublicKeyFile(tmp_path / DECIDERS), {})
    await claimed(world, key, lost)
    await counted(world, 0, term=0)
    assert await check_complete(world.log, signatures) == {0: 0}, (
        "a claim that nobody counted stops nobody: who may only produce could have made it"
    )
    await counted(world, 1, term=1)
    with pytest.raises(ClaimUnknown, match=r"0@1 .*the key lost, which deciders\.json does not list"):
        await check_complete(world.log, signatures)


async def test_unsigned_claim_that_was_counted_is_refused_unless_signatures_are_not_owed_there(
    world: World, tmp_path: Path
) -> None:
    key = load_published(tmp_path, DECIDER_KEY, DECIDERS)
    tp = await claimed(world, key, None)
    await counted(world, 1, term=1)
    keys = PublicKeyFile(tmp_path / DECIDERS)
    with pytest.raises(ClaimUnknown, match="is not signed"):
        await check_complete(world.log, LogSignatures(keys, {}))
    assert await check_complete(world.log, LogSignatures(keys, {tp.topic: ((0, 1),)})) == {0: 1}
    assert await check_complete(world.log) == {0: 1}
