"""`placet replay`: what it prints and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from ops.config import StackConfig, save_config
from ops.replay import replay
from ops.topics import ensure_topics
from projections.store.port import Batch
from projections.store.urls import check_sound, open_view, sqlite_path
from projections.tables.executions import EXECUTIONS
from schemas.topics import Topics
from tests.projections.damaged import spoil
from tests.projections.histories import LogBuilder, many_runs
from tests.projections.kafka_log import produce

pytestmark = pytest.mark.broker

COMMAND = typer.Typer()
COMMAND.command()(replay)


async def a_log(kafka: str, topics: Topics) -> None:
    await ensure_topics(kafka, topics=topics, partitions=2)
    await produce(kafka, topics.executions, many_runs(LogBuilder(2).claim_all(), 5).records)


def a_stack(kafka: str, prefix: str, directory: Path) -> StackConfig:
    """The configuration of a stack with a log, without its processes."""
    asyncio.run(a_log(kafka, Topics(prefix)))
    config = StackConfig(
        data_dir=str(directory),
        bootstrap_servers=kafka,
        embedded_kafka=False,
        database_url=f"sqlite:///{directory}/views.sqlite",
        gateway_port=0,
        url="",
        topic_prefix=prefix,
        log_signatures="off",
    )
    directory.mkdir(parents=True, exist_ok=True)
    save_config(config)
    return config


def test_replay_fills_compares_and_reports_a_difference(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    config = a_stack(kafka, topic_prefix, tmp_path / "data")
    first = _run(tmp_path, "--json")
    assert first.exit_code == 0, first.output
    assert json.loads(first.stdout)["note"] == "there is no live view yet"
    assert sqlite_path(config.database_url).stat().st_mode & 0o077 == 0
    second = _run(tmp_path, "--json")
    assert second.exit_code == 0, second.output
    report = json.loads(second.stdout)
    assert (report["equal"], report["swapped"]) == (True, True)
    assert {table["name"]: table["rows"] for table in report["tables"]}["executions"] == 5
    _meddle(config.database_url)
    third = _run(tmp_path)
    assert third.exit_code == 1, third.output
    assert "not swapped" in third.stdout
    assert _run(tmp_path, "--into", f"sqlite:///{tmp_path}/other.sqlite").exit_code == 1
    assert (tmp_path / "other.sqlite").exists()


def test_replay_into_another_database_that_could_not_be_compared_is_no_success(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    a_stack(kafka, topic_prefix, tmp_path / "data")
    result = _run(tmp_path, "--into", f"sqlite:///{tmp_path}/other.sqlite")
    assert result.exit_code == 1, result.output
    assert "not compared: there is no live view yet" in result.stdout
    assert (tmp_path / "other.sqlite").exists()


def test_replay_without_a_stack_says_where_it_looked(tmp_path: Path) -> None:
    result = _run(tmp_path)
    assert result.exit_code == 2
    assert "placet.json does not exist" in result.stderr


@pytest.mark.parametrize("damage", ["a page", "half of it", "no header"])
def test_replay_makes_a_damaged_view_anew_with_force_alone(
    kafka: str, topic_prefix: str, tmp_path: Path, damage: str
) -> None:
    config = a_stack(kafka, topic_prefix, tmp_path / "data")
    assert _run(tmp_path).exit_code == 0
    path = sqlite_path(config.database_url)
    if damage == "a page":
        spoil(path.resolve(), EXECUTIONS.name)
    elif damage == "half of it":
        os.truncate(path, path.stat().st_size // 2)
    else:
        path.write_bytes(b"\xff" * path.stat().st_size)
    first = _run(tmp_path)
    assert first.exit_code == 1, first.output
    assert "not compared: the live view is damaged and cannot be compared" in first.stdout
    assert "not swapped: the live view is damaged" in first.stdout
    assert "--force puts the rebuilt view in place" in first.stdout
    forced = _run(tmp_path, "--force")
    assert forced.exit_code == 0, forced.output
    assert "swapped in" in forced.stdout
    check_sound(config.database_url)
    assert json.loads(_run(tmp_path, "--json").stdout)["equal"] is True


def _meddle(url: str) -> None:
    store = open_view(url)
    row = store.load(EXECUTIONS, [("acme", "main", "run-0")])[0] | {"agent": "somebody else"}
    store.apply(Batch([], upserts={EXECUTIONS.name: [tuple(row.values())]}))
    store.close()


def _run(directory: Path, *arguments: str) -> Result:
    return CliRunner().invoke(COMMAND, ["--data-dir", str(directory / "data"), *arguments])
