"""Facts and claims that a newer version wrote: an export ends before the first of them in each partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.key_files import SigningKey
from ops.export.errors import NewerVersionError
from ops.export.rows import PartitionRows
from schemas.event_signatures import ANYWHERE, EventSigner, LogSignatures
from schemas.record import OutRecord, RawRecord
from schemas.term import rule_of
from tests.ops.export.logs import TOPICS, exported, files, land, memory_log, places, state_of
from tests.projections.histories import LogBuilder, key_of, many_runs, proposed, started

NEWER = b"\x00\x00\x00\xff\xff"


def make_newer(builder: LogBuilder, partition: int, offset: int) -> RawRecord:
    """Let a record have a schema that this version does not know; as it was before."""
    was = builder.records[partition][offset]
    builder.records[partition][offset] = was._replace(value=NEWER + was.value[5:])
    return was


def with_a_claim(at: int = 2) -> LogBuilder:
    """A claim at offset 0 and at another, with events under each."""
    builder = LogBuilder(1).claim_all()
    builder.append(key_of("run-1"), [started()] * (at - 1), partition=0)
    builder.claim(0, "w2")
    for number in range(5):
        builder.append(key_of(f"run-{number}"), [started()], partition=0)
    return builder


def position(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = state_of(root)["topics"][TOPICS.executions]["partitions"]["0"]
    return found


async def test_export_ends_before_the_first_event_of_a_newer_version_and_the_newer_one_goes_on(
    tmp_path: Path,
) -> None:
    builder, log = with_a_claim(), memory_log(1)
    was = make_newer(builder, 0, 4)
    land(log, builder)
    for _ in range(2):
        outcome = await exported(log, tmp_path)
        (told,) = outcome.counts.newer
        assert told[:5] == (TOPICS.executions, 0, 4, "placet.events.ExecutionStarted", "unknown_schema")
        assert places(tmp_path) == [(0, 1), (0, 3)]
        assert (position(tmp_path)["next_offset"], position(tmp_path)["claim"]) == (4, 2)
    assert outcome.counts.records == 0
    other = memory_log(1)
    builder.records[0][4] = was
    land(other, builder)
    state = (tmp_path / "_export.json").read_text()
    await exported(other, tmp_path / "other")
    ids = [state_of(at)["topics"][TOPICS.executions]["topic_id"] for at in (tmp_path, tmp_path / "other")]
    (tmp_path / "_export.json").write_text(state.replace(*ids))
    outcome = await exported(other, tmp_path)
    assert outcome.counts.rows == 4
    assert [offset for _, offset in places(tmp_path / "other")] == [1, 3, 4, 5, 6, 7]
    assert state_of(tmp_path)["totals"] == state_of(tmp_path / "other")["totals"]


async def test_claim_of_a_newer_version_is_not_passed_and_nothing_after_it_is_refused(tmp_path: Path) -> None:
    builder, log = with_a_claim(), memory_log(1)
    make_newer(builder, 0, 2)
    land(log, builder)
    outcome = await exported(log, tmp_path)
    counts = outcome.counts
    assert (counts.records, counts.rows, counts.refused, counts.unreadable) == (2, 1, 0, 0)
    assert [one.type for one in counts.newer] == ["placet.events.WriterClaimed"]
    assert (position(tmp_path)["next_offset"], position(tmp_path)["claim"]) == (2, 0)


async def test_other_partitions_are_exported_whole(tmp_path: Path) -> None:
    builder, log = many_runs(LogBuilder(4).claim_all(), 12), memory_log()
    make_newer(builder, 1, 1)
    make_newer(builder, 2, len(builder.records[2]) - 1)
    land(log, builder)
    outcome = await exported(log, tmp_path, round_records=10)
    assert [(one.partition, one.offset) for one in outcome.counts.newer] == [
        (1, 1),
        (2, len(builder.records[2]) - 1),
    ]
    expected = {
        0: len(builder.records[0]) - 1,
        2: len(builder.records[2]) - 2,
        3: len(builder.records[3]) - 1,
    }
    found = [partition for partition, _ in places(tmp_path)]
    assert {partition: found.count(partition) for partition in set(found)} == expected


async def test_newer_fact_at_the_beginning_is_an_export_without_files(tmp_path: Path) -> None:
    builder, log = with_a_claim(), memory_log(1)
    make_newer(builder, 0, 0)
    land(log, builder)
    outcome = await exported(log, tmp_path)
    assert (outcome.counts.records, files(tmp_path), len(outcome.counts.newer)) == (0, {}, 1)
    assert position(tmp_path) == {"next_offset": 0, "claim": -1, "record_id": ""}


def test_newer_record_of_a_deposed_writer_is_only_refused() -> None:
    builder = with_a_claim()
    builder.append(key_of("late"), [proposed("late")], term=0, partition=0)
    make_newer(builder, 0, len(builder.records[0]) - 1)
    found = PartitionRows(TOPICS.executions, "executions", rule_of(None, TOPICS.executions))
    found.read(builder.records[0])
    assert (found.counts.refused, found.counts.newer, found.is_stopped) == (1, [], False)


@pytest.mark.parametrize("is_signed", [True, False])
def test_claim_of_a_newer_version_stops_only_if_a_decider_signed_it(is_signed: bool) -> None:
    key = SigningKey("d1", Ed25519PrivateKey.generate())
    keys: Any = {"d1": key.private_key.public_key()}.get
    builder = with_a_claim()
    make_newer(builder, 0, 2)
    plain = [OutRecord(raw.key, raw.value, raw.headers) for raw in builder.records[0]]
    sign = EventSigner(key).sign
    signed = [
        *sign(TOPICS.executions, 0, ANYWHERE, plain[:1]),
        *sign(TOPICS.executions, 0, 1, plain[1:2]),
        *(sign(TOPICS.executions, 0, ANYWHERE, plain[2:3]) if is_signed else plain[2:3]),
    ]
    signatures = LogSignatures(keys, {TOPICS.executions: (0,)})
    found = PartitionRows(TOPICS.executions, "executions", rule_of(signatures, TOPICS.executions))
    rows = found.read([RawRecord(0, offset, 0, *record) for offset, record in enumerate(signed)])
    assert (len(rows), found.is_stopped, found.counts.refused) == (1, is_signed, int(not is_signed))


def test_sentence_names_the_first_place_and_how_many_partitions_follow() -> None:
    builder = with_a_claim()
    make_newer(builder, 0, 1)
    found = PartitionRows(TOPICS.executions, "executions", rule_of(None, TOPICS.executions))
    found.read(builder.records[0])
    text = str(NewerVersionError(found.counts.newer * 3))
    assert text.startswith(
        "placet.executions/0@1 (placet.events.ExecutionStarted: schema id 65535 is not in the"
    )
    assert (
        "was written by a newer version, and so was what follows in 2 more partitions: export with it" in text
    )
