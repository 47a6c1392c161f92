"""Where a command that reads the log of a stack finds its Kafka, also while the stack is stopped.

A stopped stack's configuration still names the port of its embedded Kafka, where by now another stack's may listen:
that of a copy of the directory even knows the same passwords. So the port is trusted only while the stack runs;
otherwise the command starts the directory's own Kafka for its time. That is also how to rebuild views that keep the
stack from starting.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from host.key_files import KeysUnreadable
from ops.component import FAILED, STARTING, STOPPED
from ops.config import DataDir, StackConfig
from ops.errors import DataDirectoryInUseError, UsageError
from ops.kafka.access import Access
from ops.kafka.child import KafkaChild
from ops.kafka.log_files import METADATA, has_metadata, has_partitions, set_aside
from ops.kafka.settings import Layout
from ops.locks import lock_directory, name_holder
from ops.ports import broker_addresses
from ops.status import read_stack
from schemas.event_signatures import LogSignatures, load_signatures
from schemas.topics import Topics


def read_signatures(settings: Mapping[str, str]) -> LogSignatures | None:
    """The keys by which the log's records are verified; None if they are not signed.

    Raises:
        UsageError: the key files cannot be read.
    """
    try:
        return load_signatures(settings)
    except KeysUnreadable as error:
        raise UsageError(str(error)) from error


@contextmanager
def reached(
    directory: DataDir, config: StackConfig, given: str | None, say: Callable[[str], None], command: str
) -> Iterator[StackConfig]:
    """The configuration with the brokers that hold the log of the stack in a directory.

    Args:
        directory: the stack's.
        config: as it was read there.
        given: bootstrap servers that somebody named; they are taken as they are.
        say: is told that Kafka is started.
        command: who reads, as others are told meanwhile that find the directory in use.

    Raises:
        OpsError: The directory's Kafka cannot be started, or the configuration is another directory's.
        UsageError: The servers that were given are no addresses.
    """
    if given is not None:
        broker_addresses(given)
    if given or not config.embedded_kafka:
        yield replace(config, bootstrap_servers=given or config.bootstrap_servers)
        return
    _check_same(directory, config)
    try:
        lock = lock_directory(directory.root)
    except DataDirectoryInUseError as error:
        yield replace(config, bootstrap_servers=_of_running(directory, error))
        return
    name_holder(lock, command)
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
        check_log_is_there(directory)
        yield servers
    finally:
        kafka.stop()


def _of_running(directory: DataDir, in_use: DataDirectoryInUseError) -> str:
    stack = read_stack(directory)
    if stack.state == STARTING and stack.bootstrap_servers is None:
        raise DataDirectoryInUseError(
            f"The stack in {directory.root} is starting (process {stack.pid}), and its Kafka does not answer yet:"
            " wait until placet status says that it is ready, or stop it with placet down."
        ) from in_use
    if stack.state in (STOPPED, FAILED) or stack.bootstrap_servers is None:
        raise in_use
    return stack.bootstrap_servers


def _check_same(directory: DataDir, config: StackConfig) -> None:
    """Refuse a copy's or moved directory's configuration, which names the files and views of the original."""
    if Path(config.data_dir).resolve() != directory.root.resolve():
        raise UsageError(
            f"{directory.config} belongs to the stack in {config.data_dir}: name that directory, or start this one"
            " with placet up first."
        )


def check_log_is_there(directory: DataDir) -> None:
    """Refuse to make an empty log in the place of one that is missing, or that Kafka does not know any more.

    Before Kafka starts and again once it serves: what of its metadata it cannot read shows in what it sets aside.

    Raises:
        UsageError: This directory knows a log, and Kafka's directory holds none, or Kafka's metadata is lost.
    """
    layout = Layout(directory.kafka)
    knows = directory.topics.is_file()
    aside = set_aside(layout.data)
    if aside:
        raise UsageError(
            f"Kafka has lost its metadata ({layout.data / METADATA}) and set aside the partitions that it does not"
            f" know ({len(aside)}: {aside[0]}, …), with every record in them: nothing is lost, and no topics were"
            " created. While the stack is stopped, restore all of that directory from a copy, and rename each …-stray"
            " back to TOPIC-PARTITION (docs/operations.md, Damaged files); then start again."
        )
    if knows and not (layout.is_formatted and has_partitions(layout.data)):
        raise UsageError(
            f"The log of this stack ({directory.topics}) is not in {layout.data}: put it there, from a backup or from"
            " where an earlier version wrote it (docs/operations.md), or start with a new data directory."
        )
    if has_partitions(layout.data) and not has_metadata(layout.data):
        raise UsageError(
            f"{layout.data / METADATA}, the only record of Kafka's topics, is missing or empty: restore all of it"
            " from a copy. The log beside it was not touched, and Kafka was not started, since it would create"
            " an empty log (docs/operations.md, Damaged files)."
        )
