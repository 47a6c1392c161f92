"""Embedded brokers for a while, and what fault tests do to them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from ops.kafka.broker import Broker, BrokerConfig


@contextmanager
def running_broker(config: BrokerConfig) -> Iterator[Broker]:
    """A started broker, stopped at the end."""
    broker = Broker(config)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def pause(broker: Broker) -> None:
    """Freeze it (SIGSTOP); returns when every thread has stopped."""
    os.kill(broker.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, broker.pid, os.WSTOPPED | os.WNOWAIT)


def resume(broker: Broker) -> None:
    """Let a frozen one go on (SIGCONT)."""
    os.kill(broker.pid, signal.SIGCONT)
