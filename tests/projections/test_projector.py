"""The projector on a real Kafka: every record once, also over kill -9; another log than it knows stops it."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from host.key_files import load_published
from log.errors import FactsDeleted, LogChanged, TopicMissing
from log.kafka.client import KafkaSettings
from log.kafka.follower import BULK, Follower
from log.places import TopicPartition
from ops.ports import free_port
from ops.topics import ensure_topics
from projections.audit.head_files import HeadFiles
from projections.audit.heads import HeadSigner, check_all
from projections.projector import Projector
from projections.store.urls import open_view, sqlite_path
from projections.tables.executions import EXECUTIONS
from schemas.audit import AUDIT_KEY, AUDIT_KEYS
from schemas.topics import Topics
from tests.projections.damaged import spoil
from tests.projections.filling import Filler
from tests.projections.histories import LogBuilder, key_of, many_runs, policy_key, policy_published, started
from tests.projections.kafka_log import produce, until

pytestmark = pytest.mark.broker
PARTITIONS = 4


@asynccontextmanager
async def projecting(kafka: str, prefix: str, url: str) -> AsyncIterator[Projector]:
    tail = Follower(KafkaSettings(kafka), BULK)
    await tail.open()
    projector = Projector(tail, lambda: open_view(url), Topics(prefix), lambda state: None)
    running = asyncio.create_task(projector.run())
    try:
        yield projector
        projector.stop()
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await tail.close()


async def fresh_topics(kafka: str, prefix: str) -> Topics:
    topics = Topics(prefix)
    await ensure_topics(kafka, topics=topics, partitions=PARTITIONS)
    return topics


def a_log() -> LogBuilder:
    return many_runs(LogBuilder(PARTITIONS).claim_all(), 40, seed=3)


def definitions_log() -> LogBuilder:
    builder = LogBuilder(1).claim_all()
    builder.append(policy_key("production"), [policy_published("production", 1)], partition=0)
    return builder


def offsets(filler: Filler) -> dict[tuple[str, int], int]:
    return {(at.topic, at.partition): at.next_offset for at in filler.store.positions()}


def ends(topics: Topics, builder: LogBuilder) -> dict[tuple[str, int], int]:
    return {(topics.executions, number): len(records) for number, records in enumerate(builder.records)}


async def delete_before(kafka: str, topic: str, offset: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    await admin.delete_records({KafkaPartition(topic, 0): RecordsToDelete(before_offset=offset)})
    await admin.close()


async def test_projector_follows_both_topics_and_makes_the_view_of_the_log(
    kafka: str, topic_prefix: str, filler: Filler, database_url: str, tmp_path: Path
) -> None:
    topics = await fresh_topics(kafka, topic_prefix)
    builder, definitions = a_log(), definitions_log()
    half = [records[: len(records) // 2] for records in builder.records]
    await produce(kafka, topics.executions, half)
    wanted = ends(topics, builder) | {(topics.definitions, 0): 2}
    async with projecting(kafka, topic_prefix, database_url):
        rest = [records[len(records) // 2 :] for records in builder.records]
        await produce(kafka, topics.executions, rest)
        await produce(kafka, topics.definitions, definitions.records)
        await until(lambda: offsets(filler) == wanted, "the view has read everything")
    expected = Filler(open_view(f"sqlite:///{tmp_path}/expected.db"), topics)
    expected.fill(builder, definitions)
    assert filler.everything() == expected.everything()
    expected.store.close()


async def test_projector_killed_again_and_again_counts_each_record_once(
    kafka: str, topic_prefix: str, tmp_path: Path, seed: int
) -> None:
    topics = await fresh_topics(kafka, topic_prefix)
    builder = many_runs(LogBuilder(PARTITIONS).claim_all(), 400, seed=4)
    url = f"sqlite:///{tmp_path}/views.db"
    settings = {
        "bootstrap_servers": kafka,
        "topic_prefix": topic_prefix,
        "database_url": url,
        "status_file": str(tmp_path / "status.json"),
        "audit_head_events": "200",
        **_dirs(tmp_path),
    }
    producing = asyncio.create_task(produce(kafka, topics.executions, builder.records))
    filler = Filler(open_view(url), topics)
    draw = random.Random(seed)
    for _ in range(4):
        before = sum(offsets(filler).values())
        process = _start(settings)
        threshold = before + draw.randint(1, 1500)
        await until(
            lambda: sum(offsets(filler).values()) >= threshold or _is_whole(filler, topics, builder),  # noqa: B023
            "the projector got on",
        )
        process.kill()
        process.wait()
    await producing
    process = _start(settings)
    await until(lambda: _is_whole(filler, topics, builder), "the view has read everything")
    await until(lambda: _status(tmp_path) == (process.pid, "ready"), "the projector is ready")
    process.terminate()
    assert process.wait(10) == 0
    assert _status(tmp_path) == (process.pid, "stopping")
    expected = Filler(open_view(f"sqlite:///{tmp_path}/expected.db"), topics)
    expected.fill(builder)
    assert filler.everything() == expected.everything()
    _check_heads(tmp_path, expected)
    expected.store.close()
    filler.store.close()


async def test_view_ahead_of_a_shorter_log_stops_the_projector(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    topics = await fresh_topics(kafka, topic_prefix)
    builder = a_log()
    url = f"sqlite:///{tmp_path}/views.db"
    ahead = Filler(open_view(url), topics)
    ahead.fill(builder, topic_id=None)
    ahead.store.close()
    await produce(kafka, topics.executions, [records[:-1] for records in builder.records])
    with pytest.raises(LogChanged, match="but the view has read up to"):
        await _run_once(kafka, topic_prefix, url)


async def test_topic_made_anew_stops_the_projector(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    topics = await fresh_topics(kafka, topic_prefix)
    url = f"sqlite:///{tmp_path}/views.db"
    known = Filler(open_view(url), topics)
    known.fill(a_log(), topic_id=None)
    known.store.close()
    other = LogBuilder(PARTITIONS)
    for partition in range(PARTITIONS):
        other.claim(partition, worker="of another installation")
    await produce(kafka, topics.executions, many_runs(other, 60, seed=9).records)
    with pytest.raises(LogChanged, match="recreated after"):
        await _run_once(kafka, topic_prefix, url)


async def test_other_record_before_the_position_stops_the_projector(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    topics = await fresh_topics(kafka, topic_prefix)
    one, other = (LogBuilder(PARTITIONS).claim_all() for _ in range(2))
    one.append(key_of("run-1"), [started()])
    other.append(key_of("run-1"), [started("another-bot")], command_id="another")
    url = f"sqlite:///{tmp_path}/views.db"
    known = Filler(open_view(url), topics)
    known.fill(one, topic_id=None)
    known.store.close()
    await produce(kafka, topics.executions, other.records)
    with pytest.raises(LogChanged, match="a record at offset 1 that is not the one"):
        await _run_once(kafka, topic_prefix, url)


async def test_log_whose_beginning_was_deleted_cannot_start_a_new_view(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    topics = await fresh_topics(kafka, topic_prefix)
    await produce(kafka, topics.executions, a_log().records)
    await delete_before(kafka, topics.executions, 3)
    with pytest.raises(FactsDeleted, match=r"begins at offset 3, .* Restore all topics from a backup"):
        await _run_once(kafka, topic_prefix, f"sqlite:///{tmp_path}/views.db")


async def test_facts_deleted_behind_the_views_position_are_not_taken_at_the_next_start(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    """What comes next is there, and so is the record before it, by which the log is known again."""
    topics = await fresh_topics(kafka, topic_prefix)
    builder = a_log()
    await produce(kafka, topics.executions, builder.records)
    url = f"sqlite:///{tmp_path}/views.db"
    view = Filler(open_view(url), topics)
    async with projecting(kafka, topic_prefix, url):
        await until(lambda: offsets(view) == ends(topics, builder), "the view has read everything")
    view.store.close()
    await delete_before(kafka, topics.executions, 1)
    with pytest.raises(FactsDeleted, match="begins at offset 1"):
        await _run_once(kafka, topic_prefix, url)


@pytest.mark.parametrize("of", ["executions", "definitions"])
async def test_facts_deleted_behind_a_projector_that_follows_the_log_stop_it(
    kafka: str, topic_prefix: str, filler: Filler, database_url: str, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    monkeypatch.setattr("projections.projector.LOOK_EVERY_S", 0.05)
    topics = await fresh_topics(kafka, topic_prefix)
    builder, definitions = a_log(), definitions_log()
    await produce(kafka, topics.executions, builder.records)
    await produce(kafka, topics.definitions, definitions.records)
    wanted = ends(topics, builder) | {(topics.definitions, 0): 2}
    tail = Follower(KafkaSettings(kafka), BULK)
    await tail.open()
    running = asyncio.create_task(
        Projector(tail, lambda: open_view(database_url), Topics(topic_prefix), lambda state: None).run()
    )
    try:
        await until(lambda: offsets(filler) == wanted, "the view has read everything")
        await delete_before(kafka, f"{topic_prefix}.{of}", 2)
        with pytest.raises(FactsDeleted, match=f"{of}/0 begins at offset 2"):
            await asyncio.wait_for(running, 60)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await tail.close()


@pytest.mark.parametrize("beyond", [0, 1])
async def test_log_that_begins_later_than_the_views_position_ends_the_process_with_exit_3(
    kafka: str, topic_prefix: str, tmp_path: Path, beyond: int
) -> None:
    """Also where the very next record is there: the one before it, by which the log is known again, is not."""
    topics = await fresh_topics(kafka, topic_prefix)
    builder = a_log()
    url = f"sqlite:///{tmp_path}/views.db"
    known = Filler(open_view(url), topics)
    known.fill(builder, topic_id=None)
    known.store.close()
    read_up_to = len(builder.records[0])
    later = many_runs(builder, 20, seed=7)
    await produce(kafka, topics.executions, later.records)
    await delete_before(kafka, topics.executions, read_up_to + beyond)
    settings = {"bootstrap_servers": kafka, "topic_prefix": topic_prefix, "database_url": url}
    status = {"status_file": str(tmp_path / "status.json")}
    process = _start({**settings, **status, **_dirs(tmp_path)}, stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 3
    sentence = said.decode().splitlines()[-1]
    assert f"/0 begins at offset {read_up_to + beyond}, but facts are kept for ever" in sentence
    assert "replay" not in sentence, "no view can be made of what is left"
    assert _status(tmp_path)[1] != "ready"


async def test_log_that_loses_what_comes_next_stops_the_projector_that_follows_it(
    kafka: str, topic_prefix: str
) -> None:
    topics = await fresh_topics(kafka, topic_prefix)
    await produce(kafka, topics.executions, a_log().records)
    await delete_before(kafka, topics.executions, 3)
    tail = Follower(KafkaSettings(kafka), BULK)
    await tail.open()
    try:
        tail.stand_at({TopicPartition(topics.executions, 0): 1})
        with pytest.raises(LogChanged, match="no longer holds offset 1"):
            await asyncio.wait_for(_poll_on(tail), 60)
    finally:
        await tail.close()


async def test_missing_topic_is_said_by_name(
    kafka: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projections.log_position.TOPIC_PATIENCE_S", 0.3)
    with pytest.raises(TopicMissing, match=f"{topic_prefix}.executions"):
        await _run_once(kafka, topic_prefix, f"sqlite:///{tmp_path}/views.db")


def test_process_without_kafka_ends_with_one_sentence_and_exit_3(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/views.db"
    settings = {"bootstrap_servers": "127.0.0.1:9", "database_url": url, **_dirs(tmp_path)}
    process = _start(settings, stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert said.decode().splitlines()[-1].startswith("Kafka does not answer at 127.0.0.1:9")


def test_process_whose_postgres_is_away_ends_with_one_sentence(kafka: str, tmp_path: Path) -> None:
    away = f"postgresql://placet@127.0.0.1:{free_port()}/postgres"
    settings = {"bootstrap_servers": kafka, "database_url": away, **_dirs(tmp_path)}
    process = _start(settings, stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, b"Unclosed" in said) == (3, False)
    assert said.decode().splitlines()[-1].startswith("The database does not answer: ")


def test_process_on_a_damaged_view_ends_with_one_sentence_and_exit_3(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/views.db"
    open_view(url).close()
    spoil(sqlite_path(url).resolve(), EXECUTIONS.name)
    settings = {"bootstrap_servers": "127.0.0.1:9", "database_url": url, **_dirs(tmp_path)}
    process = _start(settings, stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    sentence = said.decode().splitlines()[-1]
    assert sentence.startswith(f"The view at {tmp_path}/views.db is damaged")
    assert sentence.endswith("rebuild it from the log with placet replay --force.")


async def test_process_beside_heads_of_a_longer_log_ends_with_one_sentence_and_exit_3(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    topics = await fresh_topics(kafka, topic_prefix)
    builder = a_log()
    await produce(kafka, topics.executions, [records[:-1] for records in builder.records])
    await produce(kafka, topics.definitions, definitions_log().records)
    longer = Filler(open_view(f"sqlite:///{tmp_path}/longer.db"), topics)
    longer.fill(builder, topic_id=None)
    key = load_published(tmp_path / "keys", AUDIT_KEY, AUDIT_KEYS)
    files = HeadFiles(tmp_path / "audit" / "heads")
    with files.writing():
        head_signer = HeadSigner(files, key, {key.kid: key.private_key.public_key()}, every_events=1)
        head_signer.begin(longer.store)
        head_signer.turn(longer.store, is_caught_up=True)
    longer.store.close()
    url = f"sqlite:///{tmp_path}/views.db"
    settings = {
        "bootstrap_servers": kafka,
        "topic_prefix": topic_prefix,
        "database_url": url,
        **_dirs(tmp_path),
    }
    process = _start(settings, stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "its tail was cut off. Rebuild the view with placet replay" in said.decode().splitlines()[-1]
    assert [head.number for head in files.after("acme", 0, 9)] == [1]


async def _poll_on(tail: Follower) -> None:
    while True:
        await tail.poll()


def _is_whole(filler: Filler, topics: Topics, builder: LogBuilder) -> bool:
    return offsets(filler) == ends(topics, builder)


def _check_heads(tmp_path: Path, expected: Filler) -> None:
    """Every head that was signed between the kills is of this log, and names the one before it."""
    files = HeadFiles(tmp_path / "audit" / "heads")
    heads = files.after("acme", 0, 10_000)
    assert heads
    assert [head.number for head in heads] == list(range(1, len(heads) + 1))
    for before, head in itertools.pairwise(heads):
        assert head.previous == before.digest
        check_all(files, {"acme": head}, expected.store)


def _dirs(tmp_path: Path) -> dict[str, str]:
    return {"data_dir": str(tmp_path), "keys_dir": str(tmp_path / "keys"), "log_signatures": "off"}


def _status(directory: Path) -> tuple[int, str]:
    found = json.loads((directory / "status.json").read_text())
    return found["pid"], found["state"]


def _start(settings: dict[str, str], stderr: int | None = None) -> subprocess.Popen[bytes]:
    program = "import json, sys; from projections.main import run; run(json.loads(sys.argv[1]))"
    return subprocess.Popen([sys.executable, "-c", program, json.dumps(settings)], stderr=stderr)


async def _run_once(kafka: str, prefix: str, url: str) -> None:
    tail = Follower(KafkaSettings(kafka), BULK)
    await tail.open()
    projector = Projector(tail, lambda: open_view(url), Topics(prefix), lambda state: None)
    try:
        await asyncio.wait_for(projector.run(), 60)
    finally:
        await tail.close()
