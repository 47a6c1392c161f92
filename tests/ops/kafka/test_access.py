"""The embedded broker lets in whom it knows, and each does what its role needs and nothing else."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)

from log.kafka.settings import client_settings
from ops.kafka.access import Access
from ops.kafka.acl import INSTALLATION, PRINCIPALS, READER, SNAPSHOTS
from ops.kafka.broker import Broker, BrokerConfig
from ops.kafka.probe import brokers_alive
from ops.kafka.wire import PLAIN, SCRAM, Connection, SignIn, SignInFailed
from ops.ports import LOOPBACK
from ops.role import ROLES
from ops.topics import ensure_topics
from schemas.topics import Topics

pytestmark = [pytest.mark.broker]
WITHIN_S = 60.0
DECIDER, PROJECTOR, GATEWAY, TRUST, NOTIFIER, *_ = ROLES
TOPICS = Topics()
WRITERS = {
    TOPICS.commands: {DECIDER, GATEWAY},
    TOPICS.definition_commands: {DECIDER, GATEWAY},
    TOPICS.executions: {DECIDER},
    TOPICS.definitions: {DECIDER},
    TOPICS.snapshots: {DECIDER, SNAPSHOTS},
    TOPICS.trust: {TRUST},
    TOPICS.learning: set[str](),
    TOPICS.dead_letters: {DECIDER, NOTIFIER},
}

# What a program of another user tries, with nothing but the addresses: to read what it finds, and to connect.
STRANGER = """
import asyncio, os, pathlib, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
root, *servers = sys.argv[1:]
if os.geteuid() == 0:  # only once everything is imported: the interpreter may stand where others cannot read
    os.setgroups([]), os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
async def tried(make, act):
    client = make()
    try:
        await client.start()
        await act(client)
        return "done"
    except Exception as error:
        return type(error).__name__
    finally:
        await client.stop()
async def read(consumer):
    at = TopicPartition("placet.executions", 0)
    consumer.assign([at])
    await consumer.beginning_offsets([at])
async def main():
    for server in servers:
        how = {"bootstrap_servers": server, "request_timeout_ms": 3000}
        print(await tried(lambda: AIOKafkaProducer(**how), lambda it: it.send_and_wait("placet.executions", b"x")))
        print(await tried(lambda: AIOKafkaConsumer(group_id=None, **how), read))
asyncio.run(asyncio.wait_for(main(), 60))
for path in pathlib.Path(root), pathlib.Path(root) / "server.properties", pathlib.Path(root) / "clients":
    try:
        print(list(path.iterdir()) if path.is_dir() else path.read_text())
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    root = tmp_path_factory.mktemp("kafka")
    broker = Broker(BrokerConfig(root, access=Access(root / "clients", TOPICS)))
    broker.start()
    try:
        asyncio.run(
            ensure_topics(broker.bootstrap_servers, partitions=1, security=_security(broker, INSTALLATION))
        )
        yield broker
    finally:
        broker.kill()


def _security(broker: Broker, principal: str) -> dict[str, Any]:
    assert broker.config.access is not None
    return client_settings(broker.config.access.file(principal))


async def _may_write(broker: Broker, principal: str, topic: str) -> bool:
    security = _security(broker, principal)
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, **security) as producer:
        try:
            await asyncio.wait_for(producer.send_and_wait(topic, b"tried", key=b"k", partition=0), WITHIN_S)
        except TopicAuthorizationFailedError:
            return False
        return True


async def _may_read(broker: Broker, principal: str, topic: str) -> bool:
    """Whether a principal is given a record that is there."""
    assert await _may_write(broker, INSTALLATION, topic)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="none",
        enable_auto_commit=False,
        **_security(broker, principal),
    )
    try:
        await consumer.start()
        at = TopicPartition(topic, 0)
        consumer.assign([at])
        consumer.seek(at, 0)
        return bool(await asyncio.wait_for(consumer.getmany(timeout_ms=1000), WITHIN_S))
    except TopicAuthorizationFailedError:
        return False
    finally:
        await consumer.stop()


def test_case_40_another_user_without_a_password_reads_and_writes_nothing(own: Broker) -> None:
    assert own.ports is not None
    servers = [f"{LOOPBACK}:{port}" for port in (own.ports.listener, own.ports.controller)]
    is_root = os.geteuid() == 0
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, str(own.layout.root), *servers],
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = done.stdout.split()
    assert len(said) == 2 * len(servers) + 3, done.stderr
    assert all("Error" in word for word in said[: 2 * len(servers)]), said
    assert not is_root or said[-3:] == ["PermissionError"] * 3


@pytest.mark.parametrize("mechanism", [PLAIN, SCRAM])
def test_case_40_wrong_password_opens_neither_listener(own: Broker, mechanism: str) -> None:
    assert own.ports is not None
    for port in (own.ports.listener, own.ports.controller):
        for user in ("kafka", INSTALLATION):
            with Connection(LOOPBACK, port, WITHIN_S) as connection, pytest.raises((SignInFailed, EOFError)):
                connection.sign_in(SignIn(mechanism, user, "guessed"))


@pytest.mark.parametrize("topic", WRITERS)
async def test_case_40_only_the_roles_that_need_it_write_a_topic(own: Broker, topic: str) -> None:
    may = {name for name in PRINCIPALS if await _may_write(own, name, topic)}
    assert may == WRITERS[topic] | {INSTALLATION}


async def test_reader_reads_every_topic_and_no_other_prefix(own: Broker) -> None:
    assert all([await _may_read(own, READER, topic) for topic in WRITERS])
    security = _security(own, INSTALLATION)
    await ensure_topics(own.bootstrap_servers, topics=Topics("other"), partitions=1, security=security)
    assert not await _may_read(own, READER, "other.executions")
    assert not await _may_read(own, PROJECTOR, TOPICS.commands)
    assert not await _may_read(own, TRUST, TOPICS.commands)


async def test_group_of_the_deciders_takes_no_other_member(own: Broker) -> None:
    consumer = AIOKafkaConsumer(
        TOPICS.executions,
        bootstrap_servers=own.bootstrap_servers,
        group_id="placet-decider",
        **_security(own, GATEWAY),
    )
    try:
        with pytest.raises(GroupAuthorizationFailedError):
            await asyncio.wait_for(consumer.start(), WITHIN_S)
    finally:
        await consumer.stop()


async def test_passwords_outlive_a_crash_of_the_broker_and_a_lost_file_makes_a_new_one(own: Broker) -> None:
    access = own.config.access
    assert access is not None
    before, old = access.sign_in(DECIDER), access.sign_in(READER)
    own.kill()
    access.file(READER).unlink()
    await asyncio.to_thread(own.start)
    assert access.sign_in(DECIDER) == before
    assert await _may_write(own, DECIDER, TOPICS.executions)
    assert await _may_read(own, READER, TOPICS.executions)
    assert own.ports is not None
    with Connection(LOOPBACK, own.ports.listener, WITHIN_S) as connection, pytest.raises(SignInFailed):
        connection.sign_in(old)


def test_directory_of_an_earlier_version_is_closed_at_the_next_start(tmp_path: Path) -> None:
    before = Broker(BrokerConfig(tmp_path, access=None))
    before.start()
    asyncio.run(ensure_topics(before.bootstrap_servers, partitions=1))
    before.stop()
    after = Broker(BrokerConfig(tmp_path, access=Access(tmp_path / "clients", TOPICS)))
    after.start()
    try:
        assert after.ports is not None
        assert brokers_alive(LOOPBACK, after.ports.listener) == 0
        assert asyncio.run(_may_read(after, PROJECTOR, TOPICS.executions))
    finally:
        after.kill()


async def test_client_files_of_the_owner_are_private_and_name_the_installation(own: Broker) -> None:
    access = own.config.access
    assert access is not None
    password = access.sign_in(INSTALLATION).password
    for name in ("client.properties", "librdkafka.properties"):
        file = access.directory / name
        assert file.stat().st_mode & 0o077 == 0
        assert password in file.read_text(encoding="utf-8")
