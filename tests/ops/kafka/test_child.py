"""A stack's own Kafka is started again in steps: no look at it waits, whatever keeps it from serving."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ops import process
from ops.component import BACKING_OFF, READY, STARTING
from ops.errors import UsageError
from ops.files import write_text
from ops.kafka import broker as broker_module
from ops.kafka.access import Access
from ops.kafka.acl import PRINCIPALS
from ops.kafka.child import KafkaChild
from ops.kafka.settings import Layout
from ops.restarts import LONGEST_DELAY_S
from schemas.topics import Topics

# Formats as Kafka's tool does, and then runs without ever listening.
JAVA = """#!/bin/sh
case "$*" in
*StorageTool*) mkdir -p data && touch data/meta.properties ;;
*) exec sleep 600 ;;
esac
"""


@dataclass
class _Machine:
    """What the broker's process does, and what the child was."""

    child: KafkaChild
    root: Path
    answers: bool = True

    @property
    def pid(self) -> int:
        pid = self.child.component.pid
        assert pid is not None
        return pid

    def kill(self) -> None:
        """Kill the process, and let the child notice it."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        _wait(lambda: not process.is_alive(pid))
        said = self.child.tick(time.monotonic())
        assert said == "Kafka ended (signal 9); starting it again in 0.0 s"
        assert (self.child.component.state, self.child.component.pid) == (BACKING_OFF, None)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Machine]:
    """A Kafka that serves, as far as anybody sees."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="21.0.1"\n')
    java.write_text(JAVA)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setattr(broker_module, "ensure_jars", lambda cache: (cache / "kafka.jar",))
    monkeypatch.setattr(Access, "install", lambda self, host, port, password: None)
    root = tmp_path / "kafka"
    made = _Machine(KafkaChild(root, Access(tmp_path / "clients", Topics())), root)
    monkeypatch.setattr(broker_module, "brokers_alive", lambda host, port, who: int(made.answers))
    made.child.start()
    yield made
    made.child.stop()


@pytest.mark.parametrize("name", ["ports.json", *(f"clients/{one}.json" for one in PRINCIPALS)])
@pytest.mark.parametrize("content", ["", "{}", "[]"])
def test_kafka_whose_file_is_damaged_is_not_started_and_the_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str
) -> None:
    monkeypatch.setattr(broker_module, "ensure_jars", lambda cache: (cache / "kafka.jar",))
    write_text(tmp_path / name, content)
    with pytest.raises(UsageError, match=rf"/{name} cannot be read \(.*\): remove it"):
        KafkaChild(tmp_path, Access(tmp_path / "clients", Topics())).start()
    assert not Layout(tmp_path).data.exists()


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_kafka_killed_is_starting_until_it_serves_and_no_look_waits_for_it(machine: _Machine) -> None:
    first = machine.child.component
    assert first.state == READY
    machine.kill()
    machine.answers = False
    for _ in range(3):
        assert machine.child.tick(time.monotonic()) is None
        starting = machine.child.component
        assert (starting.state, starting.restarts, starting.address) == (STARTING, 1, first.address)
        assert starting.pid not in (None, first.pid)
    machine.answers = True
    assert machine.child.tick(time.monotonic()) == "Kafka had ended and was started again"
    assert machine.child.component.state == READY


def test_kafka_that_ends_while_it_starts_is_tried_again_and_says_why_until_it_serves(
    machine: _Machine,
) -> None:
    machine.kill()
    machine.answers = False
    now = time.monotonic()
    for failures in (2, 3, 4):
        assert machine.child.tick(now + LONGEST_DELAY_S) is None
        pid = machine.pid
        os.kill(pid, signal.SIGKILL)
        _wait(lambda pid=pid: not process.is_alive(pid))  # type: ignore[misc]
        Layout(machine.root).log.write_text("ERROR java.io.IOException: No space left on device\n")
        said = machine.child.tick(now)
        assert said is not None
        assert "is full: free space and start again" in said
        assert machine.child.component.reason == said
        assert machine.child._failures == failures
    assert machine.child.tick(now) is None
    assert machine.child.component.state == BACKING_OFF
    machine.answers = True
    machine.child.tick(now + LONGEST_DELAY_S)
    machine.child.tick(now)
    assert (machine.child.component.state, machine.child.component.reason) == (READY, "")


def test_kafka_that_does_not_serve_in_its_time_is_killed_and_started_again(
    machine: _Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.kill()
    machine.answers = False
    machine.child.tick(time.monotonic())
    late = machine.pid
    machine.child._broker._serves_until = 0.0
    said = machine.child.tick(time.monotonic())
    assert said is not None
    assert "does not serve after 120 s" in said
    assert not process.is_alive(late)
    assert machine.child.tick(time.monotonic()) is None
    assert machine.pid != late


@pytest.mark.parametrize("hindrance", ["port", "disk"])
def test_kafka_that_cannot_be_launched_says_why_and_is_launched_once_it_can(
    machine: _Machine, monkeypatch: pytest.MonkeyPatch, hindrance: str
) -> None:
    address = machine.child.component.address
    assert address is not None
    machine.kill()
    if hindrance == "port":
        with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
            said = machine.child.tick(time.monotonic())
    else:
        with monkeypatch.context() as full:
            full.setattr(broker_module, "LOWEST_FREE_BYTES", 2**80)
            said = machine.child.tick(time.monotonic())
    assert said is not None
    assert ("was taken by another program" if hindrance == "port" else "free space") in said
    assert (machine.child.component.state, machine.child.component.reason) == (BACKING_OFF, said)
    assert machine.child.tick(time.monotonic()) is None
    assert machine.child.component.state == STARTING


def test_kafka_whose_log_has_gone_is_not_given_an_empty_one(machine: _Machine) -> None:
    machine.kill()
    (machine.root / "data").rename(machine.root / "elsewhere")
    said = machine.child.tick(time.monotonic())
    assert said is not None
    assert "no empty log is created in its place: put it back there" in said
    assert not (machine.root / "data").exists()
    (machine.root / "elsewhere").rename(machine.root / "data")
    assert machine.child.tick(time.monotonic()) is None
    assert machine.child.component.state == STARTING


def test_kafka_stopped_while_it_starts_is_killed_at_once(machine: _Machine) -> None:
    machine.kill()
    machine.answers = False
    machine.child.tick(time.monotonic())
    starting = machine.pid
    machine.child.stop()
    assert not process.is_alive(starting)
