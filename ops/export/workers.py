"""An export by several processes: each reads some partitions into files, and the calling one commits their rounds.

Partitions are independent, and nearly all the time goes into reading and encoding.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

import msgspec

from host.errors import OperatorError
from log.kafka.log import KafkaLog
from log.kafka.settings import client_settings
from log.port import Log
from ops.errors import OpsError
from ops.export.errors import OutputUnusableError
from ops.export.reading import Round, Stretch, Work, rounds
from ops.export.run import Growth
from ops.process import die_with
from projections.main import GC_THRESHOLD
from schemas.topics import Topics

# With fewer records, another process costs more than it saves.
RECORDS_WORTH_IT = 20_000
# Each needs about 200 MB.
PROCESSES_MAX = 4
END_S = 10.0

# The first byte of each message from a worker.
MOVED, ROUND, DONE, FAILED = b"m", b"r", b"d", b"f"

_ENCODE = msgspec.msgpack.Encoder().encode
_ROUND = msgspec.msgpack.Decoder(Round)


@dataclass(frozen=True, slots=True)
class Job:
    """What one worker reads, of which log, and how."""

    settings: Mapping[str, str]
    work: Work
    stretches: Sequence[Stretch]


@asynccontextmanager
async def opened_log(settings: Mapping[str, str]) -> AsyncIterator[Log]:
    """The log in a role's settings; it connects at first use.

    Raises:
        SettingsRefused: the settings of its clients cannot be used.
    """
    clients = client_settings(settings["kafka_settings"])
    log = KafkaLog(settings["bootstrap_servers"], Topics(settings["topic_prefix"]), clients)
    try:
        yield log
    finally:
        await log.close()


def shares(stretches: Sequence[Stretch], count: int) -> list[list[Stretch]]:
    """Divide what is to be read into at most `count` shares of about the same length."""
    found: list[list[Stretch]] = [[] for _ in range(count)]
    for stretch in sorted(stretches, key=lambda one: one.offsets, reverse=True):
        if stretch.offsets:
            min(found, key=lambda share: sum(one.offsets for one in share)).append(stretch)
    return [share for share in found if share]


def export_by(jobs: Sequence[Job], growth: Growth) -> None:
    """Add what the jobs read to the folder.

    Call it from a thread that lives as long as the process: the workers end with it.

    Raises:
        OpsError: the log cannot be read, or a file cannot be written; what was committed before stays.
    """
    context = multiprocessing.get_context("spawn")
    pipes, workers = [], []
    for job in jobs:
        ours, theirs = context.Pipe(duplex=False)
        pipes.append(ours)
        workers.append(context.Process(target=work, args=(theirs, job), daemon=True))
        workers[-1].start()
        theirs.close()
    try:
        _take_all(pipes, growth)
    finally:
        for worker in workers:
            worker.terminate()
            worker.join(END_S)
        for pipe in pipes:
            pipe.close()


def _take_all(pipes: Sequence[Connection], growth: Growth) -> None:
    left = list(pipes)
    while left:
        for pipe in wait(left):
            assert isinstance(pipe, Connection)
            if not _take(pipe, growth):
                left.remove(pipe)


def _take(pipe: Connection, growth: Growth) -> bool:
    """Take a worker's next message; false if it is done."""
    try:
        message = pipe.recv_bytes()
    except EOFError as error:
        raise OpsError(
            "A process that was reading the log ended unexpectedly: run the same command again, which continues, and "
            "with --processes 1 if memory is short."
        ) from error
    kind, content = message[:1], message[1:]
    if kind == FAILED:
        raise OpsError(content.decode())
    if kind == ROUND:
        growth.take(_ROUND.decode(content))
    elif kind == MOVED:
        growth.moved(int.from_bytes(content, "big"))
    return kind != DONE


def work(pipe: Connection, job: Job) -> None:
    """The worker process: send rounds, then that it is done, or a sentence that says what went wrong.

    It leaves the terminal's interrupts to the calling process. The kernel ends it with that process, which held the
    folder's lock.
    """
    if (caller := multiprocessing.parent_process()) is not None and caller.pid is not None:
        die_with(caller.pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(GC_THRESHOLD)
    with suppress(BrokenPipeError, ConnectionResetError):
        try:
            asyncio.run(_send_all(pipe, job))
        except OperatorError as error:
            pipe.send_bytes(FAILED + str(error).encode())
        else:
            pipe.send_bytes(DONE)


async def _send_all(pipe: Connection, job: Job) -> None:
    try:
        async with opened_log(job.settings) as log:
            for stretch in job.stretches:
                await _send(pipe, log, job.work, stretch)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except OSError as error:
        raise OutputUnusableError(job.work.staging.parent, error) from error


async def _send(pipe: Connection, log: Log, how: Work, stretch: Stretch) -> None:
    def moved(offsets: int) -> None:
        pipe.send_bytes(MOVED + offsets.to_bytes(8, "big"))

    async with aclosing(rounds(log, how, stretch, moved)) as ended:
        async for one in ended:
            pipe.send_bytes(ROUND + _ENCODE(one))
