"""Where a command that reads the log of a stack finds its Kafka, also while the stack is stopped.

A stopped stack's configuration still names the port of its embedded Kafka, where by now another stack's may listen:
that of a copy of the directory even knows the same passwords. So the port is believed only while the stack runs;
otherwise the command starts the directory's own Kafka for its time. That is also how to rebuild views that keep the
stack from starting.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ops.config import DataDir, StackConfig
from ops.errors import DataDirectoryInUseError, UsageError
from ops.kafka.access import Access
from ops.kafka.child import KafkaChild
from ops.kafka.settings import Layout
from ops.locks import lock_directory
from ops.status import FAILED, STOPPED, read_stack
from schemas.topics import Topics


@contextmanager
def reached(
    directory: DataDir, config: StackConfig, given: str | None, say: Callable[[str], None]
) -> Iterator[StackConfig]:
    """The configuration with the brokers that hold the log of the stack in a directory.

    Args:
        directory: the stack's.
        config: as it was read there.
        given: bootstrap servers that somebody named; they are taken as they are.
        say: is told that Kafka is started.

    Raises:
        OpsError: The directory's Kafka cannot be started, or the configuration is another directory's.
    """
    if given or not config.embedded_kafka:
        yield replace(config, bootstrap_servers=given or config.bootstrap_servers)
        return
    _check_same(directory, config)
    try:
        lock = lock_directory(directory.root)
    except DataDirectoryInUseError as error:
        yield replace(config, bootstrap_servers=_of_running(directory, error))
        return
    try:
        with _started(directory, config, say) as servers:
            yield replace(config, bootstrap_servers=servers)
    finally:
        os.close(lock)


@contextmanager
def _started(directory: DataDir, config: StackConfig, say: Callable[[str], None]) -> Iterator[str]:
    check_log_is_there(directory)
    say(f"Nothing runs in {directory.root}: its Kafka is started for this command")
    kafka = KafkaChild(directory.kafka, Access(directory.kafka_clients, Topics(config.topic_prefix)))
    servers = kafka.start()
    try:
        yield servers
    finally:
        kafka.stop()


def _of_running(directory: DataDir, in_use: DataDirectoryInUseError) -> str:
    stack = read_stack(directory)
    if stack.state in (STOPPED, FAILED) or stack.bootstrap_servers is None:
        raise in_use
    return stack.bootstrap_servers


def _check_same(directory: DataDir, config: StackConfig) -> None:
    """Refuse a copy's or moved directory's configuration, which names the files and views of the original."""
    if Path(config.data_dir).resolve() != directory.root.resolve():
        raise UsageError(
            f"{directory.config} is of the stack in {config.data_dir}: name that directory, or start this one with"
            " placet up first."
        )


def check_log_is_there(directory: DataDir) -> None:
    """Refuse to make an empty log in the place of one that is missing.

    Raises:
        UsageError: This directory knows a log, and Kafka's directory holds none.
    """
    layout = Layout(directory.kafka)
    if directory.topics.is_file() and not layout.is_formatted:
        raise UsageError(
            f"The log of this stack ({directory.topics}) is not in {layout.data}: put it there, from a backup or from"
            " where an earlier version wrote it (docs/operations.md), or start with a new data directory."
        )
