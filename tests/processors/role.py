"""The trust role as a process of its own, and Kafka as its tests see it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

from aiokafka import AIOKafkaProducer

from log.kafka.log import KafkaLog
from log.places import TopicPartition
from ops.process import spawn, stop
from schemas.record import OutRecord, RawRecord
from schemas.topics import Topics
from schemas.trust import ClassPart, TrustCheckpoint, TrustPart, TrustRecord, decode

PROGRAM = """
import json, logging, sys
{prelude}
logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(name)s %(message)s")
from services.processors.main import run
run(json.loads(sys.argv[1]))
"""

# The key of records that tests put on the trust topic and that are none of ours.
STRANGER = b"stranger"


@dataclass
class Role:
    """One trust process at a time, started again at will under the same worker id."""

    bootstrap_servers: str
    topics: Topics
    partitions: int
    directory: Path
    worker_id: str = "trust"
    stall_after_s: float = 60.0
    session_timeout_s: float = 6.0
    # Python that runs first in its process.
    prelude: str = ""
    process: Popen[bytes] | None = field(default=None, init=False)

    @property
    def log(self) -> str:
        """What it printed so far, over all its lives."""
        path = self.directory / "trust.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def settings(self) -> Mapping[str, str]:
        return {
            "bootstrap_servers": self.bootstrap_servers,
            "topic_prefix": self.topics.prefix,
            "partitions": str(self.partitions),
            "data_dir": str(self.directory / "data"),
            "worker_id": self.worker_id,
            "log_signatures": "off",
            "status_file": str(self.directory / "status.json"),
            "stall_after_s": str(self.stall_after_s),
            "session_timeout_s": str(self.session_timeout_s),
        }

    def start(self) -> None:
        command = (sys.executable, "-c", PROGRAM.format(prelude=self.prelude), json.dumps(self.settings()))
        self.process = spawn(command, self.directory / "trust.log", dict(os.environ))

    def state(self) -> str:
        """Its own word, if it comes from the process that runs now."""
        path = self.directory / "status.json"
        status = json.loads(path.read_text()) if path.exists() else {}
        return str(status.get("state")) if status.get("pid") == self.pid else ""

    def wait_ready(self, within_s: float = 40.0) -> None:
        wait_until(lambda: self.state() == "ready", within_s, lambda: self.log[-4000:])

    def wait_end(self, within_s: float = 40.0) -> int:
        assert self.process is not None
        return self.process.wait(within_s)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.wait_end()

    def freeze(self, for_s: float) -> None:
        """Stop it in its tracks, and let it go on after a while."""
        with self.frozen():
            time.sleep(for_s)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop it in its tracks meanwhile, so that it finds all that happened at once."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> int:
        assert self.process is not None
        return stop(self.process, 15.0)

    def end(self) -> None:
        """Leave nothing behind."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def wait_until(condition: Any, within_s: float, explain: Any = lambda: "") -> None:
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s: {explain()}")
        time.sleep(0.05)


async def produce(bootstrap_servers: str, topic: str, partition: int, records: Iterable[OutRecord]) -> None:
    """Append records in order."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, enable_idempotence=True, acks="all")
    await producer.start()
    try:
        for record in records:
            await producer.send(
                topic, record.value, record.key, partition=partition, headers=list(record.headers)
            )
        await producer.flush()
    finally:
        await producer.stop()


async def read_all(bootstrap_servers: str, topics: Topics, partitions: int) -> list[RawRecord]:
    """Every record that stands on the trust topic now, by partition and offset."""
    log = KafkaLog(bootstrap_servers, topics)
    try:
        found: list[RawRecord] = []
        for partition in range(partitions):
            tp = TopicPartition(topics.trust, partition)
            first, end = await log.bounds(tp)
            async for records in log.read(tp, first, end):
                found.extend(records)
        return found
    finally:
        await log.close()


def newest(raws: Iterable[RawRecord]) -> list[TrustRecord]:
    """The last record under each of our keys, as compaction would leave it."""
    latest = {raw.key: raw.value for raw in raws if raw.key != STRANGER}
    return [decode(value) for value in latest.values() if value]


def newest_parts(raws: Iterable[RawRecord]) -> list[TrustPart]:
    return [record for record in newest(raws) if isinstance(record, TrustPart)]


def newest_class_parts(raws: Iterable[RawRecord]) -> list[ClassPart]:
    return [record for record in newest(raws) if isinstance(record, ClassPart)]


def newest_checkpoints(raws: Iterable[RawRecord]) -> dict[int, TrustCheckpoint]:
    return {record.partition: record for record in newest(raws) if isinstance(record, TrustCheckpoint)}
