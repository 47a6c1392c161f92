"""Reading the log with several processes: each reads, decodes and folds some partitions; one writes.

Decoding and folding cost most, and partitions share no rows (except sums), so the work is divided by partition.
The database has one writer: the calling process. A worker waits while the pipe is full, so that only a few batches
are under way.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

import uvloop

from host.garbage_collector import collect_seldom
from log.errors import LogError
from log.kafka.client import KafkaSettings
from log.kafka.follower import BULK, Follower
from log.places import TopicPartition
from log.shares import RECORDS_WORTH_IT, shares
from projections.projector import new_writer
from projections.queries.postgres_moments import PostgresMoments
from projections.queries.sqlite_moments import SqliteMoments
from projections.queries.views import Source
from projections.rebuild import Bulk, Offsets, Progress, Reading
from projections.store.port import Batch, Key, ViewError, ViewStore
from projections.store.postgres import PostgresViewStore
from projections.store.sqlite import SqliteViewStore
from projections.tables.columns import R, TableOf
from projections.wire import decode_batch, encode_batch
from schemas.event_signatures import LogSignatures
from schemas.topics import Topics

BATCH_RECORDS = 5_000
WAIT_S = 0.002

# The first byte of each message from a worker.
BATCH, DONE, FAILED = b"b", b"d", b"f"


@dataclass(frozen=True, slots=True)
class Job:
    """The partitions that one worker reads, and where it finds rows that are no longer in its memory."""

    address: KafkaSettings
    topics: Topics
    targets: Mapping[TopicPartition, int]
    source: Callable[[], Source]
    signatures: LogSignatures | None = None


@dataclass(slots=True)
class PipeStore:
    """A worker's store: batches are sent through the pipe; rows are read from the database once they are written."""

    pipe: Connection
    applied: Any
    source: Callable[[], Source]
    sent: int = 0
    opened: list[Source] = field(default_factory=list)

    def apply(self, batch: Batch) -> None:
        """Send a batch to the process that writes."""
        self.pipe.send_bytes(BATCH + encode_batch(batch))
        self.sent += 1

    def load(self, table: TableOf[R], keys: Sequence[Key], through: int | None = None) -> list[R]:
        """Rows by their keys, read after `through` (default: all) of the batches sent have been written."""
        while self.applied.value < (self.sent if through is None else through):
            _check_writer_lives()
            time.sleep(WAIT_S)
        if not self.opened:
            self.opened.append(self.source())
        with self.opened[0].moment() as moment:
            return moment.keyed(table, keys)


def with_processes(
    address: KafkaSettings,
    topics: Topics,
    processes: int | None = None,
    signatures: LogSignatures | None = None,
) -> Bulk:
    """A `Bulk` that reads with several processes if the log is long enough for that.

    Args:
        address: the cluster.
        topics: the topics of the installation.
        processes: the number of processes; by default the number of cores.
        signatures: verifies which records a decider signed.
    """
    count = processes or os.cpu_count() or 1

    def bulk(store: ViewStore, targets: Offsets, progress: Progress) -> None:
        if sum(targets.values()) >= RECORDS_WORTH_IT and count > 1:
            divided = shares(list(targets.items()), count, lambda one: one[1])
            jobs = [Job(address, topics, dict(share), _source(store), signatures) for share in divided]
            _read(store, jobs, progress)

    return bulk


def _source(store: ViewStore) -> Callable[[], Source]:
    if isinstance(store, SqliteViewStore):
        return partial(SqliteMoments, store.file)
    if isinstance(store, PostgresViewStore):
        return partial(PostgresMoments, store.url, store.schema, 1)
    raise ViewError(f"{type(store).__name__} cannot be filled by several processes: use one.")


def _read(store: ViewStore, jobs: Sequence[Job], progress: Progress) -> None:
    context = multiprocessing.get_context("spawn")
    total = sum(sum(job.targets.values()) for job in jobs)
    counters: dict[Connection, Any] = {}
    workers = []
    for job in jobs:
        ours, theirs = context.Pipe()
        counters[ours] = context.Value("Q", 0, lock=False)
        workers.append(context.Process(target=work, args=(theirs, counters[ours], job), daemon=True))
        workers[-1].start()
        theirs.close()
    try:
        _write_all(store, counters, lambda done: progress(done, total))
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _write_all(store: ViewStore, counters: dict[Connection, Any], told: Callable[[int], None]) -> None:
    done = 0
    left = set(counters)
    while left:
        for pipe in wait(left):
            assert isinstance(pipe, Connection)
            message = _receive(pipe)
            if message is None:
                left.remove(pipe)
                continue
            store.apply(message)
            counters[pipe].value += 1
            done += sum(
                after.next_offset - (before.next_offset if before else 0) for before, after in message.moves
            )
            told(done)


def _receive(pipe: Connection) -> Batch | None:
    try:
        message = pipe.recv_bytes()
    except EOFError as error:
        raise LogError(
            "A process that was reading the log ended unexpectedly: read its output, and try again."
        ) from error
    kind, content = message[:1], message[1:]
    if kind == FAILED:
        raise LogError(content.decode())
    return decode_batch(content) if kind == BATCH else None


def work(pipe: Connection, applied: Any, job: Job) -> None:
    """The worker process: send batches, then that it is done, or a sentence that says what went wrong.

    It leaves the terminal's interrupts to the writing process, and ends silently once that process has ended.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_seldom()
    with suppress(BrokenPipeError, ConnectionResetError):
        try:
            uvloop.run(_send_all(PipeStore(pipe, applied, job.source), job))
        except (LogError, ViewError) as error:
            pipe.send_bytes(FAILED + str(error).encode())
        else:
            pipe.send_bytes(DONE)


def _check_writer_lives() -> None:
    writer = multiprocessing.parent_process()
    if writer is not None and not writer.is_alive():
        raise BrokenPipeError("the writing process has ended")


async def _send_all(store: PipeStore, job: Job) -> None:
    tail = Follower(job.address, BULK)
    await tail.open()
    try:
        writer = new_writer(store, job.topics, {}, BATCH_RECORDS, job.signatures)
        await Reading(tail, writer, lambda done, of: None).up_to(job.targets)
    finally:
        await tail.close()
