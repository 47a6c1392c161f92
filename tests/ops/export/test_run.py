"""An export from a log in memory: whole, in steps, after a death, and into a folder of something else."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from log.errors import FactsDeleted
from log.places import TopicPartition
from ops.export import errors
from ops.export.folder import Folder
from ops.export.layout import Format
from schemas.canonical import canonical
from schemas.events.calls import ToolCallSucceeded
from tests.ops.export.logs import (
    TOPICS,
    asked,
    expected_places,
    exported,
    files,
    land,
    memory_log,
    names,
    places,
    state_of,
    table,
)
from tests.projections.histories import (
    START_MS,
    LogBuilder,
    key_of,
    many_runs,
    policy_key,
    policy_published,
    proposed,
    started,
)

DAY_MS = 86_400_000
FORMATS = list(Format)


@pytest.mark.parametrize("form", FORMATS)
async def test_export_has_every_event_once_whatever_the_steps(tmp_path: Path, form: Format) -> None:
    log, builder = memory_log(), LogBuilder(4).claim_all()
    for step in range(3):
        many_runs(builder, 6, seed=step, tenant=f"t{step % 2}")
        land(log, builder)
        outcome = await exported(log, tmp_path / "steps", form, round_records=50)
        assert outcome.counts.unreadable == outcome.counts.refused == 0
    assert places(tmp_path / "steps") == expected_places(builder)
    await exported(log, tmp_path / "once", form)
    query = "SELECT * EXCLUDE (filename) FROM {} ORDER BY event_id"
    steps, once = (
        asked(query.format(table(tmp_path / name)[:-1] + ", filename = true)")) for name in ("steps", "once")
    )
    assert steps == once
    assert len(files(tmp_path / "once")) < len(files(tmp_path / "steps"))


async def test_both_formats_have_the_same_values(tmp_path: Path) -> None:
    log, builder = memory_log(), many_runs(LogBuilder(4).claim_all(), 5)
    land(log, builder)
    found = []
    for form in FORMATS:
        await exported(log, tmp_path / form, form)
        columns = (
            'event_id::VARCHAR, "at"::TIMESTAMP, type, body::VARCHAR, risk_score, resolves, rules, tenant'
        )
        found.append(asked(f"SELECT {columns} FROM {table(tmp_path / form)} ORDER BY event_id"))
    assert found[0] == found[1]


async def test_second_export_of_a_log_that_has_not_grown_adds_nothing(tmp_path: Path) -> None:
    log = memory_log()
    land(log, many_runs(LogBuilder(4).claim_all(), 3))
    await exported(log, tmp_path)
    before, state = files(tmp_path), state_of(tmp_path)
    outcome = await exported(log, tmp_path)
    assert (outcome.counts.records, outcome.files) == (0, 0)
    assert (files(tmp_path), state_of(tmp_path)) == (before, state)


async def test_empty_history_is_an_export_without_files(tmp_path: Path) -> None:
    outcome = await exported(memory_log(), tmp_path)
    assert (outcome.counts.records, files(tmp_path)) == (0, {})
    assert names(tmp_path) == ["_export.json", "_export.lock"]


async def test_gaps_in_the_offsets_are_passed(tmp_path: Path) -> None:
    log, builder = memory_log(1), LogBuilder(1).claim_all()
    tp = TopicPartition(TOPICS.executions, 0)
    many_runs(builder, 2)
    land(log, builder)
    log.partition(tp).skip(7)
    await exported(log, tmp_path)
    state = state_of(tmp_path)["topics"][tp.topic]["partitions"]["0"]
    assert state["next_offset"] == len(builder.records[0])
    outcome = await exported(log, tmp_path)
    assert outcome.counts.records == 0


async def test_history_whose_beginning_was_deleted_is_refused(tmp_path: Path) -> None:
    log = memory_log()
    land(log, many_runs(LogBuilder(4).claim_all(), 3))
    log.partition(TopicPartition(TOPICS.executions, 2)).delete_before(1)
    with pytest.raises(FactsDeleted, match="begins at offset 1"):
        await exported(log, tmp_path)
    assert files(tmp_path) == {}


async def test_event_is_in_the_day_of_its_own_time_however_the_clocks_differ(tmp_path: Path) -> None:
    log, builder = memory_log(2), LogBuilder(2).claim_all()
    for partition, at_ms in ((0, START_MS + DAY_MS), (1, START_MS), (0, START_MS + 3 * DAY_MS)):
        builder.now_ms = at_ms
        builder.append(key_of(f"run-{at_ms}"), [started()], partition=partition)
    land(log, builder)
    await exported(log, tmp_path)
    assert sorted(files(tmp_path)) == [
        "events/tenant_key=acme/day=2025-10-09/part-1-1.parquet",
        "events/tenant_key=acme/day=2025-10-10/part-0-1.parquet",
        "events/tenant_key=acme/day=2025-10-12/part-0-2.parquet",
    ]
    builder.now_ms = START_MS + 1
    builder.append(key_of("late"), [started()], partition=1)
    land(log, builder)
    await exported(log, tmp_path)
    assert asked(f'SELECT "day"::VARCHAR, count(*) FROM {table(tmp_path)} GROUP BY ALL ORDER BY ALL') == [
        ("2025-10-09", 2),
        ("2025-10-10", 1),
        ("2025-10-12", 1),
    ]


async def test_tenants_are_read_back_by_their_names_whatever_their_folders_are_called(tmp_path: Path) -> None:
    tenants = ["a:b", "ACME", "acme", ".", "a" * 128, ":" * 128, ":" * 127 + "b"]
    log, builder = memory_log(1), LogBuilder(1).claim_all()
    for tenant in tenants:
        builder.append(key_of("run-1", tenant), [started()], partition=0)
    land(log, builder)
    await exported(log, tmp_path)
    found = asked(f"SELECT tenant, tenant_key FROM {table(tmp_path)} ORDER BY tenant")
    assert [tenant for tenant, _ in found] == sorted(tenants)
    folders = names(tmp_path / "events")
    assert len({name.lower() for name in folders}) == len(tenants)
    assert max(len(name.encode()) for name in folders) <= 255
    assert {tenant for tenant, key in found if tenant == key} == {
        tenant for tenant in tenants if len(tenant) < 5
    } | {"a" * 128}


async def test_definitions_are_beside_the_events(tmp_path: Path) -> None:
    log, builder = memory_log(), LogBuilder(1).claim_all()
    builder.append(policy_key("production"), [policy_published("production", 1)], partition=0)
    land(log, builder, TOPICS.definitions)
    await exported(log, tmp_path)
    assert asked(
        f"SELECT type, name, definition_version, execution_id FROM {table(tmp_path, 'definitions')}"
    ) == [("PolicyPublished", "production", 1, None)]


@pytest.mark.parametrize("form", FORMATS)
async def test_values_of_250_kib_are_read_back(tmp_path: Path, form: Format) -> None:
    output = canonical({"text": "ä" * 125 * 1024})
    log, builder = memory_log(1), LogBuilder(1).claim_all()
    done = ToolCallSucceeded(call_id="call-1", attempt_id="a", output=output, duration_ms=1, by="svc")
    builder.append(key_of("run-1"), [done] * 100)
    land(log, builder)
    await exported(log, tmp_path, form)
    (found,) = asked(f"SELECT count(*), min(output)::VARCHAR, max(output)::VARCHAR FROM {table(tmp_path)}")
    assert found == (100, output, output)


class Killed(Exception):
    """The process ends here."""


@pytest.mark.parametrize("step", ["sync_directory", "_save", "_move", "complete", "stage", "finish"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", [1, 3])
async def test_export_that_is_killed_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool, nth: int
) -> None:
    log, builder = memory_log(), many_runs(LogBuilder(4).claim_all(), 12)
    land(log, builder)
    with monkeypatch.context() as patched:
        _die(patched, step, after=after, nth=nth if step in ("sync_directory", "_save", "_move") else 1)
        with pytest.raises(Killed):
            await exported(log, tmp_path, round_records=20)
    many_runs(builder, 2, seed=9, tenant="other")
    land(log, builder)
    await exported(log, tmp_path, round_records=20)
    assert places(tmp_path) == expected_places(builder)
    assert state_of(tmp_path)["totals"]["rows"] == len(expected_places(builder))
    assert names(tmp_path) == ["_export.json", "_export.lock", "events"]


def _die(patched: pytest.MonkeyPatch, step: str, *, after: bool, nth: int) -> None:
    """Let a step of a commit fail the nth time, before or after it was done."""
    from ops.export import folder

    owner: Any = folder if step == "sync_directory" else Folder
    was, left = getattr(owner, step), [nth]

    def dying(*arguments: Any) -> Any:
        # Opening the folder moves nothing yet.
        left[0] -= not (step == "_move" and not arguments[1])
        if left[0] == 0 and not after:
            raise Killed
        done = was(*arguments)
        if left[0] == 0:
            raise Killed
        return done

    patched.setattr(owner, step, dying)


async def test_moves_that_were_half_done_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, builder = memory_log(1), LogBuilder(1).claim_all()
    for tenant in ("a", "b", "c"):
        many_runs(builder, 2, tenant=tenant)
    land(log, builder)
    left = iter([True, False])
    was = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if "_staging" in str(path) and path.suffix == ".parquet" and not next(left):
            raise Killed
        return was(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        with pytest.raises(Killed):
            await exported(log, tmp_path)
    assert len(files(tmp_path)) == 1
    assert len(state_of(tmp_path)["moves"]) == 3
    outcome = await exported(log, tmp_path)
    assert outcome.counts.records == 0
    assert places(tmp_path) == expected_places(builder)


async def test_other_format_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    await exported(memory_log(), tmp_path, Format.JSONL)
    with pytest.raises(errors.OtherFormatError, match="has files of the format jsonl, and parquet was asked"):
        await exported(memory_log(), tmp_path, Format.PARQUET)
    await exported(memory_log(), tmp_path)
    assert state_of(tmp_path)["format"] == "jsonl"


async def test_topic_that_was_recreated_is_refused(tmp_path: Path) -> None:
    log = memory_log()
    land(log, many_runs(LogBuilder(4).claim_all(), 3))
    await exported(log, tmp_path)
    log.recreate(TOPICS.executions)
    with pytest.raises(errors.OtherLogError, match=r"placet\.executions was recreated since"):
        await exported(log, tmp_path)


async def test_log_that_is_shorter_than_the_export_is_refused(tmp_path: Path) -> None:
    log, builder = memory_log(), many_runs(LogBuilder(4).claim_all(), 3)
    land(log, builder)
    await exported(log, tmp_path)
    tp = TopicPartition(TOPICS.executions, 1)
    end = len(builder.records[1])
    log.partition(tp).truncate(end - 1)
    with pytest.raises(errors.ShorterLogError, match=f"ends at offset {end - 1}, but .* up to {end}"):
        await exported(log, tmp_path)


async def test_log_that_was_cut_and_grew_differently_is_refused(tmp_path: Path) -> None:
    log, builder = memory_log(1), LogBuilder(1).claim_all()
    builder.append(key_of("run-1"), [started()], command_id="one")
    land(log, builder)
    await exported(log, tmp_path)
    tp = TopicPartition(TOPICS.executions, 0)
    log.partition(tp).truncate(1)
    other = LogBuilder(1).claim_all()
    other.append(key_of("run-1"), [started(), proposed("c")], command_id="another")
    land(log, other)
    with pytest.raises(errors.OtherLogError, match=r"placet\.executions/0@1 is another record"):
        await exported(log, tmp_path)


async def test_folder_of_another_prefix_is_refused(tmp_path: Path) -> None:
    await exported(memory_log(), tmp_path)
    state = (tmp_path / "_export.json").read_text()
    (tmp_path / "_export.json").write_text(state.replace("placet.executions", "other.executions"))
    with pytest.raises(errors.OtherLogError, match=r"other\.executions is not one of its topics"):
        await exported(memory_log(), tmp_path)


async def test_position_behind_a_round_continues_its_term(tmp_path: Path, seed: int) -> None:
    log, builder = memory_log(1), LogBuilder(1).claim_all()
    draw = random.Random(seed)
    for number in range(20):
        old = builder.term[0]
        builder.append(key_of(f"run-{number}"), [started()], partition=0)
        builder.claim(0, f"w{number}")
        builder.append(key_of("late"), [started()], term=old, partition=0)
    land(log, builder)
    outcome = await exported(log, tmp_path, round_records=draw.randint(1, 20))
    assert (outcome.counts.rows, outcome.counts.refused, outcome.counts.about_the_log) == (20, 20, 21)
