"""Check that this machine can run a stack; each failed check says what to do."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from ops.component import FAILED as STACK_FAILED
from ops.component import READY, STARTING, STOPPED
from ops.config import DataDir, StackConfig, load_config
from ops.errors import OpsError
from ops.kafka.acl import READER
from ops.kafka.jars import cache_dir, is_intact
from ops.kafka.java import find_java
from ops.kafka.manifest import KAFKA_VERSION, pinned_jars
from ops.kafka.probe import is_recent
from ops.kafka.security import client_settings
from ops.options import UpOptions, check_addresses
from ops.ports import broker_addresses
from ops.status import read_stack, unnamed_supervisor
from ops.topics import validate_topics
from schemas.topics import Topics
from services.processors.notifications.document import NotificationsRefused, read_document

OLDEST_PYTHON = (3, 11)
LOWEST_FREE_BYTES = 1024**3
CLOCK_TOLERANCE_S = 5.0

OK, WARNING, FAILED = "ok", "warning", "failed"


@dataclass(frozen=True)
class Finding:
    """The result of one check: ok, warning (not checked, or not wrong yet) or failed."""

    check: str
    state: str
    detail: str


def examine(directory: DataDir, port: int) -> Iterator[Finding]:
    """Every finding about this machine and the stack in this directory; each check follows those it depends on.

    Args:
        directory: The stack's data directory; it need not exist.
        port: The gateway's port, checked if no stack runs.
    """
    yield _python()
    yield _checked("java", _java)
    yield _jars()
    yield _disk(directory.root)
    stack = read_stack(directory)
    if stack.state in (STOPPED, STACK_FAILED):
        yield _checked("port", lambda: _port(directory, port))
        why = unnamed_supervisor(directory) or "no stack runs in this data directory (placet up)"
        yield Finding("kafka", WARNING, f"not checked: {why}")
        return
    yield from (
        Finding(part.name, OK if part.state == READY else FAILED, part.reason or part.state)
        for part in stack.components
    )
    if stack.state != READY:
        state = WARNING if stack.state == STARTING else FAILED
        left_out = "topics, Kafka's version and the clock are not checked"
        yield Finding(
            "stack", state, f"{stack.state}; {left_out}: {stack.message or 'try again once it is ready'}"
        )
        return
    config = load_config(directory.config)
    yield _version(config)
    yield _checked("topics", lambda: _topics(config))
    yield _checked("clock", lambda: _clock(config))
    if config.notifications_file:
        yield _notifications(Path(config.notifications_file))


def _checked(check: str, answer: Callable[[], str]) -> Finding:
    try:
        return Finding(check, OK, answer())
    except OpsError as error:
        return Finding(check, FAILED, str(error))


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", OK if sys.version_info >= OLDEST_PYTHON else FAILED, version)


def _java() -> str:
    java = find_java()
    told = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    return f"{told.stderr.splitlines()[0]} ({java})"


def _jars() -> Finding:
    home = cache_dir() / f"kafka-{KAFKA_VERSION}"
    jars = pinned_jars()
    intact = sum(is_intact(home / jar.file_name, jar) for jar in jars)
    detail = f"{intact} of {len(jars)} jars of Kafka {KAFKA_VERSION} are in {home} with their pinned SHA-256"
    if intact == len(jars):
        return Finding("jars", OK, detail)
    return Finding("jars", WARNING, f"{detail}; placet up fetches the others")


def _disk(root: Path) -> Finding:
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    detail = f"{free / 1024**3:.1f} GiB free at {existing}"
    return Finding(
        "disk", OK if free >= LOWEST_FREE_BYTES and os.access(existing, os.W_OK) else FAILED, detail
    )


def _port(directory: DataDir, port: int) -> str:
    check_addresses(UpOptions(directory.root, port))
    return f"{port} is free"


def _version(config: StackConfig) -> Finding:
    if config.embedded_kafka:
        return Finding("kafka version", OK, KAFKA_VERSION)
    if config.kafka_settings:
        return Finding("kafka version", WARNING, "not checked: the cluster requires SASL or TLS")
    recent = is_recent(*broker_addresses(config.bootstrap_servers)[0])
    return Finding("kafka version", OK if recent else FAILED, "3.9 or newer" if recent else "older than 3.9")


def _notifications(file: Path) -> Finding:
    try:
        count = len(read_document(file).notifications)
    except NotificationsRefused as error:
        return Finding("notifications", FAILED, f"{file}: {error}")
    # The secrets are not checked: the stack may have other environment variables than this command.
    return Finding(
        "notifications", OK, f"{count} in {file}; placet notifications check also checks their secrets"
    )


def _topics(config: StackConfig) -> str:
    asyncio.run(
        validate_topics(
            config.bootstrap_servers,
            topics=Topics(prefix=config.topic_prefix),
            partitions=config.partitions,
            security=_security(config),
        )
    )
    return f"all exist, {config.partitions} partitions"


def _clock(config: StackConfig) -> str:
    newest_ms = asyncio.run(_newest_append_ms(config))
    if newest_ms is None:
        return "the log has no command yet to compare with"
    behind_s = newest_ms / 1000 - time.time()
    if behind_s > CLOCK_TOLERANCE_S:
        raise OpsError(f"This clock is {behind_s:.0f} s behind the log's newest record: set it (NTP).")
    return "not behind the log"


async def _newest_append_ms(config: StackConfig) -> int | None:
    """The newest append time in the commands' topic: the broker's clock, not this machine's."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=config.bootstrap_servers,
        enable_auto_commit=False,
        auto_offset_reset="none",
        **_security(config),
    )
    topic = Topics(prefix=config.topic_prefix).commands
    try:
        await consumer.start()
        partitions = [TopicPartition(topic, number) for number in range(config.partitions)]
        return await _newest_of(consumer, partitions)
    except (KafkaError, OSError) as error:
        raise OpsError(
            f"The commands' topic cannot be read ({type(error).__name__}): read Kafka's log."
        ) from error
    finally:
        await consumer.stop()


async def _newest_of(consumer: AIOKafkaConsumer, partitions: list[TopicPartition]) -> int | None:
    ends = await consumer.end_offsets(partitions)
    starts = await consumer.beginning_offsets(partitions)
    newest = None
    for partition in (part for part in partitions if ends[part] > starts[part]):
        consumer.assign([partition])
        consumer.seek(partition, ends[partition] - 1)
        record = await consumer.getone()
        newest = max(newest or 0, record.timestamp)
    return newest


def _security(config: StackConfig) -> dict[str, object]:
    return client_settings(config.kafka_settings_of(READER))
