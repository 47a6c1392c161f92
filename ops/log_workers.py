"""Processes that divide the partitions of a log among them; the calling process takes what they find.

Partitions are independent, and nearly all the time goes into reading and decoding.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from host.errors import OperatorError
from host.garbage_collector import collect_seldom
from log.kafka.log import KafkaLog
from log.kafka.settings import client_settings
from log.port import Log
from ops.errors import OpsError
from ops.process import die_with
from schemas.topics import Topics

# Each needs about 200 MB.
PROCESSES_MAX = 4
END_S = 10.0

# The first byte of each message from a worker.
_MOVED, _FOUND, _DONE, _FAILED = b"m", b"f", b"d", b"e"

Job = TypeVar("Job")


class Teller:
    """What a worker says to the calling process."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def moved(self, records: int) -> None:
        """So many records more are read."""
        self._pipe.send_bytes(_MOVED + records.to_bytes(8, "big"))

    def found(self, content: bytes) -> None:
        """Something that the calling process decodes."""
        self._pipe.send_bytes(_FOUND + content)


Do = Callable[[Job, Teller], Coroutine[Any, Any, None]]


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


def default_processes() -> int:
    """One for each core that this process may use, as far as memory stays small."""
    return min(PROCESSES_MAX, len(os.sched_getaffinity(0)))


def run_by(
    do: Do[Job], jobs: Sequence[Job], found: Callable[[bytes], None], moved: Callable[[int], None]
) -> None:
    """Do each job in a process of its own.

    Call it from a thread that lives as long as the process: the workers end with it. And in no event loop, which an
    interrupt would let wait for the end.

    Args:
        do: a function of a module, which gets a job and tells what it finds.
        jobs: what can be pickled.
        found: takes what a worker has found.
        moved: hears how many records more are read.

    Raises:
        OpsError: a worker says so, or has ended.
    """
    context = multiprocessing.get_context("spawn")
    pipes, workers = [], []
    for job in jobs:
        ours, theirs = context.Pipe(duplex=False)
        pipes.append(ours)
        workers.append(context.Process(target=_work, args=(theirs, do, job), daemon=True))
        workers[-1].start()
        theirs.close()
    try:
        _take_all(pipes, found, moved)
    finally:
        for worker in workers:
            worker.terminate()
            worker.join(END_S)
        for pipe in pipes:
            pipe.close()


def _take_all(
    pipes: Sequence[Connection], found: Callable[[bytes], None], moved: Callable[[int], None]
) -> None:
    left = list(pipes)
    while left:
        for pipe in wait(left):
            assert isinstance(pipe, Connection)
            kind, content = _next(pipe)
            if kind == _FAILED:
                raise OpsError(content.decode())
            if kind == _FOUND:
                found(content)
            elif kind == _MOVED:
                moved(int.from_bytes(content, "big"))
            else:
                left.remove(pipe)


def _next(pipe: Connection) -> tuple[bytes, bytes]:
    try:
        message = pipe.recv_bytes()
    except EOFError as error:
        raise OpsError(
            "A process that was reading the log ended unexpectedly: run the same command again, and with "
            "--processes 1 if memory is short."
        ) from error
    return message[:1], message[1:]


def _work(pipe: Connection, do: Do[Job], job: Job) -> None:
    """The worker process: what it finds, and then that it is done, or a sentence that says what went wrong.

    It leaves the terminal's interrupts to the calling process. The kernel ends it with that process.
    """
    if (caller := multiprocessing.parent_process()) is not None and caller.pid is not None:
        die_with(caller.pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What is read lives until it is told: the collector would go through it again and again.
    collect_seldom()
    with suppress(BrokenPipeError, ConnectionResetError):
        try:
            asyncio.run(do(job, Teller(pipe)))
        except OperatorError as error:
            pipe.send_bytes(_FAILED + str(error).encode())
        else:
            pipe.send_bytes(_DONE)
