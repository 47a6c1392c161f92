"""The end of a heartbeat sender: its thread is gone before its process goes on, whatever the broker does."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from log.kafka.heartbeat_producer import HeartbeatProducer
from vitals.heartbeat_sender import JOIN_WITHIN_S, HeartbeatSender
from vitals.process_status import ProcessStatus


@pytest.fixture
def silent_broker() -> Iterator[socket.socket]:
    """A port that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        yield listening


def producer_to(listening: socket.socket) -> HeartbeatProducer:
    host, port = listening.getsockname()
    return HeartbeatProducer(f"{host}:{port}", {}, "placet.heartbeats")


def sender_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "heartbeats"]


def test_stop_before_a_silent_broker_ends_the_thread(silent_broker: socket.socket) -> None:
    sender = HeartbeatSender(ProcessStatus("decider", "d1"), producer_to(silent_broker), None)
    sender.start()
    connection, _ = silent_broker.accept()
    with connection:
        sender.stop()
    assert sender_threads() == []


class _ProducerThatHangs(HeartbeatProducer):
    """One whose connection cannot be let go of, as on a machine that is overloaded."""

    async def close(self) -> None:
        await super().close()
        await asyncio.sleep(10 * JOIN_WITHIN_S)


def test_stop_gives_up_a_last_heartbeat_that_takes_too_long() -> None:
    sender = HeartbeatSender(
        ProcessStatus("decider", "d1"), _ProducerThatHangs("127.0.0.1:9", {}, "placet.heartbeats"), None
    )
    sender.start()
    sender.stop()
    assert sender_threads() == []


class _ProducerThatCancels:
    """Ends its `stop` as aiokafka does where the task of its own that it awaits was cancelled."""

    def __init__(self) -> None:
        self.client = self
        self.is_closed = False

    async def stop(self) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    async def close(self) -> None:
        self.is_closed = True


async def test_close_outlives_a_cancellation_that_is_the_clients_own() -> None:
    producer, client = HeartbeatProducer("127.0.0.1:9", {}, "placet.heartbeats"), _ProducerThatCancels()
    producer._producer = client
    await producer.close()
    assert client.is_closed
