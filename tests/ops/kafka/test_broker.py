"""The embedded broker through a life: killed, refused, left behind by its parent."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from host.errors import EXIT_USAGE
from ops import process
from ops.errors import (
    DataDirectoryInUseError,
    DiskFullError,
    KafkaFailedError,
    PortTakenError,
    UsageError,
)
from ops.kafka import broker as broker_module
from ops.kafka.broker import Broker, BrokerConfig
from ops.kafka.diagnosis import explain
from ops.kafka.probe import brokers_alive, is_recent
from ops.kafka.settings import Layout, Ports
from ops.ports import free_port
from ops.topics import ensure_topics
from schemas.topics import Topics
from tests.servers.brokers import pause, resume

LOOPBACK = "127.0.0.1"


def wait_until(holds: Callable[[], bool], within_s: float = 15.0) -> None:
    """Poll a condition; fail when it does not come to hold."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "the condition did not come to hold in time"
        time.sleep(0.05)


@pytest.mark.broker
async def test_broker_killed_and_restarted_keeps_address_and_acknowledged_records(broker: Broker) -> None:
    address = broker.bootstrap_servers
    topic = Topics().executions
    await ensure_topics(address, partitions=2)
    async with AIOKafkaProducer(bootstrap_servers=address, acks="all", enable_idempotence=True) as producer:
        await producer.send_and_wait(topic, b"kept", partition=1)
    broker.kill()
    assert brokers_alive(LOOPBACK, broker.ports.listener if broker.ports else 0) == 0
    broker.start()
    assert broker.bootstrap_servers == address
    consumer = AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="none", enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 1)])
        consumer.seek(TopicPartition(topic, 1), 0)
        assert (await consumer.getone()).value == b"kept"
    finally:
        await consumer.stop()


@pytest.mark.broker
def test_broker_paused_does_not_answer_and_resumed_does(broker: Broker) -> None:
    assert broker.ports is not None
    port = broker.ports.listener
    pause(broker)
    assert brokers_alive(LOOPBACK, port, timeout_s=0.5) == 0
    resume(broker)
    wait_until(lambda: brokers_alive(LOOPBACK, port) == 1)
    assert is_recent(LOOPBACK, port)


@pytest.mark.broker
def test_start_on_a_directory_in_use_is_refused(broker: Broker) -> None:
    with pytest.raises(DataDirectoryInUseError, match="choose another --data-dir") as refused:
        Broker(BrokerConfig(broker.config.data_dir, access=None)).start()
    assert refused.value.exit_code == EXIT_USAGE
    assert broker.is_running


def test_start_on_a_taken_port_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"Port {port} on {LOOPBACK} is taken"):
            Broker(BrokerConfig(tmp_path, port=port, access=None)).start()
    assert not Layout(tmp_path).is_formatted


def test_start_where_the_last_port_was_taken_meanwhile_takes_a_free_one(tmp_path: Path) -> None:
    """What the sentence on a port that was taken while Kafka started says."""
    layout = Layout(tmp_path)
    with socket.create_server((LOOPBACK, 0)) as other:
        taken = Ports(other.getsockname()[1], other.getsockname()[1])
        layout.ports.write_text(json.dumps(asdict(taken)), encoding="utf-8")
        chosen = broker_module._choose_ports(layout, 0)
        assert taken.listener not in (chosen.listener, chosen.controller)


def test_start_where_one_port_is_remembered_twice_takes_two(tmp_path: Path) -> None:
    layout, one = Layout(tmp_path), free_port()
    layout.ports.write_text(json.dumps(asdict(Ports(one, one))), encoding="utf-8")
    chosen = broker_module._choose_ports(layout, 0)
    assert chosen.listener != chosen.controller


def test_restart_of_a_broker_whose_port_was_taken_says_how_to_get_another(tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        broker = Broker(BrokerConfig(tmp_path, access=None))
        broker.ports = Ports(other.getsockname()[1], 0)
        with pytest.raises(PortTakenError, match=r"end that one, or stop this stack and start it again"):
            broker.launch()


@pytest.mark.broker
@pytest.mark.parametrize("is_taken_again", [False, True])
def test_start_takes_other_ports_where_a_free_one_was_taken_before_kafka_listened(
    is_taken_again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "PORT_RACES", 1)
    with socket.create_server((LOOPBACK, 0)) as other:
        taken = other.getsockname()[1]
        # A listener and a controller; then another listener, since a controller's port that is still free is kept.
        offered = iter([taken, free_port(), *([taken] if is_taken_again else [])])
        monkeypatch.setattr(broker_module, "free_port", lambda **_: next(offered, 0) or free_port())
        broker = Broker(BrokerConfig(tmp_path, access=None))
        try:
            if is_taken_again:
                with pytest.raises(PortTakenError, match="was taken while it started"):
                    broker.start()
            else:
                broker.start()
                assert broker.ports is not None
                assert taken not in (broker.ports.listener, broker.ports.controller)
        finally:
            broker.stop()


def test_start_on_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "LOWEST_FREE_BYTES", 2**80)
    with pytest.raises(DiskFullError, match="free space, or choose another --data-dir"):
        Broker(BrokerConfig(tmp_path, access=None)).start()


def test_start_with_a_cache_that_java_takes_for_two_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="set another directory in PLACET_CACHE"):
        Broker(BrokerConfig(tmp_path / "data", access=None, cache=tmp_path / "a:b")).start()
    assert not (tmp_path / "a:b").exists()


def test_start_whose_log_would_go_elsewhere_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="21.0.1"\n')
    java.write_text(
        '#!/bin/sh\nmkdir -p elsewhere\ntouch elsewhere/meta.properties\nprintf "%s " "$LC_ALL" "$@"\n'
    )
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setattr(broker_module, "ensure_jars", lambda cache: (cache / "kafka.jar",))
    broker = Broker(BrokerConfig(tmp_path / "é", access=None))
    with pytest.raises(KafkaFailedError, match=r"Kafka has prepared a directory other than .*/é/data"):
        broker.start()
    said = broker.layout.output.read_text(encoding="utf-8")
    # It works where its files are, and reads names of files as they are.
    assert said.startswith("C.UTF-8 ")
    assert said.endswith("-c server.properties ")
    assert (broker.layout.root / "elsewhere").is_dir()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("java.io.IOException: No space left on device", "nothing acknowledged is lost"),
        ("java.net.BindException: Address already in use", "start again, and it takes one that is free"),
        ("KafkaException: Failed to acquire lock on file .lock", "choose another --data-dir"),
        ("java.nio.file.FileSystemException: /d/x: Read-only file system", "make it writable"),
        ("java.lang.OutOfMemoryError", "for the cause"),
    ],
)
def test_explain_reads_the_cause_from_the_log(tmp_path: Path, said: str, sentence: str) -> None:
    layout = Layout(tmp_path)
    layout.log.write_text(f"WARN something\nERROR {said}\n", encoding="utf-8")
    assert sentence in str(explain(layout))


def test_explain_says_how_long_it_waited_and_what_silence_may_mean(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.output.write_text(
        "Formatting metadata directory\nWARNING: A terminally deprecated method was called\n"
    )
    late = str(explain(layout, 60.0))
    assert "does not serve after 60 s" in late
    assert "show no error, so it may only be slow: start again" in late
    assert "check for a lack of memory" in str(explain(layout))
    layout.log.write_text("2026 WARN slow disk\n2026 INFO starting\n")
    said = str(explain(layout, 60.0))
    assert "after 60 s; it may only be slow, and starting again loses nothing" in said
    assert said.endswith("the last error is: 2026 WARN slow disk.")


@pytest.mark.broker
def test_broker_that_is_late_is_told_with_the_time(tmp_path: Path) -> None:
    broker = Broker(BrokerConfig(tmp_path, access=None))
    with pytest.raises(KafkaFailedError, match="does not serve after 0 s"):
        broker.start(timeout_s=0.01)
    assert not broker.is_running


@pytest.mark.broker
def test_broker_whose_parent_is_killed_dies_with_it(tmp_path: Path) -> None:
    program = (
        "import pathlib, time; from ops.kafka.broker import Broker, BrokerConfig\n"
        f"broker = Broker(BrokerConfig(pathlib.Path({str(tmp_path)!r}), access=None))\n"
        "broker.start(); print(broker.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert process.is_alive(pid)
        parent.kill()
        parent.wait()
        wait_until(lambda: not process.is_alive(pid))
