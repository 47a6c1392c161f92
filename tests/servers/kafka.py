"""Where the tests' Kafka comes from: `PLACET_TEST_BOOTSTRAP`, a container of Docker, or embedded."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from ops.kafka.broker import BrokerConfig
from tests.servers.brokers import running_broker


@contextmanager
def find_kafka(directory: Path) -> Iterator[str]:
    """Bootstrap servers of a Kafka that lasts as long as the context."""
    given = os.environ.get("PLACET_TEST_BOOTSTRAP")
    if given:
        yield given
    elif docker_answers():
        with _container() as bootstrap_servers:
            yield bootstrap_servers
    else:
        with running_broker(BrokerConfig(directory, access=None)) as broker:
            yield broker.bootstrap_servers


def docker_answers() -> bool:
    """Whether a Docker daemon answers a ping at `DOCKER_HOST`, or at its usual socket."""
    address = urlsplit(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock")
    is_unix = address.scheme == "unix"
    with socket.socket(socket.AF_UNIX if is_unix else socket.AF_INET) as connection:
        connection.settimeout(2.0)
        try:
            connection.connect(address.path if is_unix else (address.hostname, address.port or 2375))
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return b" 200 " in connection.recv(64)
        except OSError:
            return False


@contextmanager
def _container() -> Iterator[str]:
    from testcontainers.kafka import KafkaContainer

    container = KafkaContainer().with_kraft().with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
    with container:
        yield container.get_bootstrap_server()
