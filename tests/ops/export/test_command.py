"""`placet export` on a real Kafka: what it prints, how it ends, in one process and in several."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from ops.config import StackConfig, save_config
from ops.export import command, workers
from ops.export.command import export_command
from ops.export.folder import Folder
from ops.log_workers import PROCESSES_MAX, default_processes
from ops.topics import ensure_topics
from schemas.topics import Topics
from tests.ops.export.logs import asked, expected_places, files, places, table
from tests.projections.histories import LogBuilder, key_of, many_runs, proposed, started
from tests.projections.kafka_log import produce

COMMAND = typer.Typer()
COMMAND.command("export")(export_command)


def a_stack(kafka: str, prefix: str, directory: Path) -> Path:
    """A directory with a configuration, and nothing that runs."""
    directory.mkdir(exist_ok=True)
    save_config(
        StackConfig(
            data_dir=str(directory),
            bootstrap_servers=kafka,
            embedded_kafka=False,
            database_url="",
            gateway_port=0,
            url="",
            topic_prefix=prefix,
            log_signatures="off",
        )
    )
    return directory


def fill(kafka: str, prefix: str, builder: LogBuilder, begin: int = 0) -> None:
    async def filled() -> None:
        await ensure_topics(kafka, topics=Topics(prefix), partitions=builder.partitions)
        records = [raws[begin:] for raws in builder.records]
        await produce(kafka, Topics(prefix).executions, records)

    asyncio.run(filled())


def run(data: Path, out: Path, *arguments: str) -> Result:
    return CliRunner().invoke(COMMAND, ["--data-dir", str(data), "--out", str(out), *arguments])


def answer(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_export_of_a_log_and_of_what_was_added_to_it(
    kafka: str, topic_prefix: str, tmp_path: Path, form: str
) -> None:
    data, out = a_stack(kafka, topic_prefix, tmp_path / "data"), tmp_path / "out"
    builder = many_runs(LogBuilder(1).claim_all(), 10)
    old = builder.term[0]
    builder.claim(0, "w2")
    builder.append(key_of("late"), [proposed("late")], term=old, partition=0)
    builder.append_raw(0, b"foreign")
    fill(kafka, topic_prefix, builder)
    first = answer(run(data, out, "--format", form, "--json"))
    events = len(builder.records[0]) - 4
    assert (first["records"], first["rows"], first["files"]) == (events + 4, events, 1)
    assert (first["about_the_log"], first["refused"], first["unreadable"]) == (2, 1, 1)
    assert first["unread"][0]["offset"] == len(builder.records[0]) - 1
    begin = len(builder.records[0])
    many_runs(builder, 2, seed=3)
    fill(kafka, topic_prefix, builder, begin)
    second = answer(run(data, out, "--json"))
    assert (second["format"], second["rows"]) == (form, len(builder.records[0]) - begin)
    assert second["total"]["rows"] == first["rows"] + second["rows"]
    not_written = {(0, begin - 1), (0, begin - 2)}
    assert places(out) == [place for place in expected_places(builder) if place not in not_written]


def test_export_by_several_processes_is_that_by_one(
    kafka: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = a_stack(kafka, topic_prefix, tmp_path / "data")
    builder = many_runs(LogBuilder(4).claim_all(), 40)
    fill(kafka, topic_prefix, builder)
    one = answer(run(data, tmp_path / "one", "--json", "--processes", "1"))
    monkeypatch.setattr(command, "RECORDS_WORTH_IT", 10)
    several = answer(run(data, tmp_path / "several", "--json", "--processes", "3"))
    for changing in ("out", "seconds"):
        del one[changing], several[changing]
    assert several == one
    assert files(tmp_path / "several") == files(tmp_path / "one")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_facts_of_a_newer_version_end_the_export_before_them_and_it_says_so(
    kafka: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    monkeypatch.setattr(command, "RECORDS_WORTH_IT", 1)
    data, out = a_stack(kafka, topic_prefix, tmp_path / "data"), tmp_path / "out"
    builder = many_runs(LogBuilder(2).claim_all(), 10)
    whole = builder.records[1]
    whole[4] = whole[4]._replace(value=b"\x00\x00\x00\xff\xff" + whole[4].value[5:])
    fill(kafka, topic_prefix, builder)
    done = run(data, out, "--json", "--processes", processes)
    assert done.exit_code == 3
    told = json.loads(done.stdout)
    events = len(builder.records[0]) - 1 + 3
    assert (told["records"], told["rows"], told["unreadable"]) == (events + 2, events, 0)
    assert [(one["partition"], one["offset"], one["reason"]) for one in told["newer"]] == [
        (1, 4, "unknown_schema")
    ]
    assert f"{topic_prefix}.executions/1@4 (" in done.stderr
    assert "was written by a newer version: export with it" in done.stderr
    again = run(data, out, "--json", "--processes", processes)
    assert (again.exit_code, json.loads(again.stdout)["records"]) == (3, 0)
    assert json.loads(again.stdout)["total"]["rows"] == events


def test_what_is_foreign_in_the_staging_folder_of_a_killed_run_is_told(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    data, out = a_stack(kafka, topic_prefix, tmp_path / "data"), tmp_path / "out"
    fill(kafka, topic_prefix, many_runs(LogBuilder(1).claim_all(), 2))
    killed = Folder(out, None, verified=False)
    (killed.stage() / "mine").mkdir()
    killed.close()
    done = run(data, out)
    assert done.exit_code == 0, done.output
    assert f"{killed.staging / 'mine'} is not of an export, and was left there" in done.stderr.replace(
        "\n", ""
    )


def test_process_that_cannot_read_is_one_sentence(
    kafka: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = a_stack(kafka, topic_prefix, tmp_path / "data")
    fill(kafka, topic_prefix, many_runs(LogBuilder(2).claim_all(), 5))
    monkeypatch.setattr(command, "RECORDS_WORTH_IT", 10)
    was = workers.Job

    def job_of_nowhere(settings: dict[str, str], *rest: Any) -> workers.Job:
        return was({**settings, "bootstrap_servers": "127.0.0.1:1"}, *rest)

    monkeypatch.setattr(command, "Job", job_of_nowhere)
    done = run(data, tmp_path / "out", "--processes", "2")
    assert done.exit_code == 3
    _, sentence = done.stderr.splitlines()
    assert sentence.startswith("Kafka does not answer at 127.0.0.1:1")


def test_empty_log_says_that_nothing_was_written(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    data = a_stack(kafka, topic_prefix, tmp_path / "data")
    fill(kafka, topic_prefix, LogBuilder(2))
    done = run(data, tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert f"0 events written to 0 files in {tmp_path / 'out'}" in done.stdout


def test_text_names_what_was_left_out(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    data = a_stack(kafka, topic_prefix, tmp_path / "data")
    builder = LogBuilder(1).claim_all()
    builder.append(key_of("late"), [started()], term=77, partition=0)
    builder.append_raw(0, b"foreign")
    fill(kafka, topic_prefix, builder)
    done = run(data, tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "1 records do not count by the term rule, and are in no file" in done.stdout
    assert f"{topic_prefix}.executions/0@2 : malformed: " in done.stderr


def test_topic_that_is_missing_is_not_reachable(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    done = run(a_stack(kafka, topic_prefix, tmp_path / "data"), tmp_path / "out")
    assert done.exit_code == 3
    assert f"{topic_prefix}.executions or one of its partitions does not exist" in done.stderr


def test_other_format_is_wrong_usage(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    data = a_stack(kafka, topic_prefix, tmp_path / "data")
    fill(kafka, topic_prefix, LogBuilder(1).claim_all())
    assert run(data, tmp_path / "out", "--format", "jsonl").exit_code == 0
    done = run(data, tmp_path / "out", "--format", "parquet")
    assert done.exit_code == 2
    assert "has files of the format jsonl, and parquet was asked for" in done.stderr


def test_new_export_says_where_it_begins_and_a_continued_one_does_not(
    kafka: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = a_stack(kafka, topic_prefix, tmp_path / "data")
    fill(kafka, topic_prefix, LogBuilder(1).claim_all())
    for name in ("first", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        for is_new in (True, False):
            done = CliRunner().invoke(COMMAND, ["--data-dir", str(data)])
            said = f"A new export begins in {tmp_path / name / 'placet-export'}"
            assert (done.exit_code, said in done.stderr) == (0, is_new), done.output


def test_export_without_a_stack_says_where_it_looked(tmp_path: Path) -> None:
    done = run(tmp_path / "data", tmp_path / "out")
    assert done.exit_code == 2
    assert "placet.json does not exist" in done.stderr
    assert not (tmp_path / "out").exists()


def test_processes_are_bounded_by_default() -> None:
    assert 1 <= default_processes() <= PROCESSES_MAX


def test_table_of_an_export_is_one_line_for_duckdb(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    data = a_stack(kafka, topic_prefix, tmp_path / "data")
    fill(kafka, topic_prefix, many_runs(LogBuilder(2).claim_all(), 3))
    assert run(data, tmp_path / "out").exit_code == 0
    assert asked(f"SELECT count(DISTINCT execution_id) FROM {table(tmp_path / 'out')}") == [(3,)]
