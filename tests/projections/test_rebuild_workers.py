"""Several processes rebuild what one does; a row that a worker forgot is read only once it was written."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace

import pytest

from log.errors import LogError
from log.kafka.client import KafkaSettings
from log.kafka.follower import BULK, Follower
from ops.process import is_alive
from ops.topics import ensure_topics
from projections.queries.sqlite_moments import SqliteMoments
from projections.rebuild import Plan, rebuild
from projections.rebuild_workers import BATCH, PipeStore, with_processes
from projections.store.port import Batch
from projections.store.sqlite import SqliteViewStore
from projections.store.urls import open_view
from projections.tables.executions import EXECUTIONS
from schemas.topics import Topics
from tests.projections.filling import Filler
from tests.projections.histories import LogBuilder, many_runs
from tests.projections.kafka_log import produce


@pytest.mark.broker
async def test_rebuild_by_two_processes_makes_the_same_view(
    kafka: str, topic_prefix: str, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projections.rebuild_workers.RECORDS_WORTH_IT", 1)
    topics, address = Topics(topic_prefix), KafkaSettings(kafka)
    await ensure_topics(kafka, topics=topics, partitions=3)
    builder = many_runs(LogBuilder(3).claim_all(), 40, seed=2)
    await produce(kafka, topics.executions, builder.records)
    told: list[tuple[int, int]] = []
    tail = Follower(address, BULK)
    await tail.open()
    bulk = with_processes(address, topics, 2)
    outcome = await rebuild(
        Plan(database_url, database_url), tail, topics, lambda done, of: told.append((done, of)), bulk
    )
    await tail.close()
    total = sum(map(len, builder.records))
    assert (outcome.refused, outcome.records) == ("", total)
    assert told[-1] == (total, total)
    made, expected = (
        Filler(open_view(database_url), topics),
        Filler(open_view(f"sqlite:///{tmp_path}/e.db"), topics),
    )
    expected.fill(builder)
    assert made.everything() == expected.everything()
    made.store.close()
    expected.store.close()


@pytest.mark.broker
async def test_worker_that_cannot_read_ends_the_rebuild_with_its_sentence(
    kafka: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projections.rebuild_workers.RECORDS_WORTH_IT", 1)
    topics = Topics(topic_prefix)
    await ensure_topics(kafka, topics=topics, partitions=1)
    await produce(kafka, topics.executions, many_runs(LogBuilder(1).claim_all(), 2).records)
    url = f"sqlite:///{tmp_path}/v.db"
    tail = Follower(KafkaSettings(kafka), BULK)
    await tail.open()
    bulk = with_processes(KafkaSettings("127.0.0.1:9"), topics, 2)
    with pytest.raises(LogError, match=r"does not answer at 127\.0\.0\.1:9"):
        await rebuild(Plan(url, url), tail, topics, lambda done, of: None, bulk)
    await tail.close()
    assert os.listdir(tmp_path) == []


def test_load_waits_until_what_was_sent_is_written(tmp_path: Path) -> None:
    file = tmp_path / "v.db"
    filler = Filler(SqliteViewStore(file, file))
    ours, theirs = multiprocessing.Pipe()
    applied = SimpleNamespace(value=0)
    store = PipeStore(theirs, applied, partial(SqliteMoments, file))
    store.apply(Batch([]))
    found: list[str] = []
    loading = threading.Thread(
        target=lambda: found.extend(
            row["execution_id"]
            for row in store.load(EXECUTIONS, [("acme", "main", "run-0"), ("acme", "main", "x")])
        )
    )
    loading.start()
    assert ours.recv_bytes()[:1] == BATCH
    filler.fill(many_runs(LogBuilder(1).claim_all(), 1))
    assert found == []
    applied.value = 1
    loading.join(10)
    assert found == ["run-0"]
    store.opened[0].close()
    filler.store.close()


# A worker that waits for rows which its writer never writes; the file's name is for spawn, which reads it anew.
WAITS = """
import multiprocessing, time
from functools import partial
from types import SimpleNamespace
from projections import rebuild_workers

async def ask(store, job):
    store.load(None, [], through=1)

def work(pipe, applied, job):
    rebuild_workers._send_all = ask
    rebuild_workers.work(pipe, SimpleNamespace(value=0), SimpleNamespace(source=None))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    worker = context.Process(target=work, args=(theirs, None, None), daemon=True)
    worker.start()
    print(worker.pid, flush=True)
    time.sleep(600)
"""


def test_worker_whose_writer_was_killed_ends_without_a_word(tmp_path: Path) -> None:
    program = tmp_path / "waits.py"
    program.write_text(WAITS)
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, program], stdout=PIPE, stderr=PIPE, text=True, env=environ
    ) as writer:
        assert writer.stdout is not None
        assert writer.stderr is not None
        worker = int(writer.stdout.readline())
        writer.kill()
        # The worker has them open as well: their end is its end.
        assert writer.stdout.read() == ""
        assert writer.stderr.read() == ""
    assert not is_alive(worker)
