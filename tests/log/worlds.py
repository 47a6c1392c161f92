"""Fresh logs of each kind, as fixtures of every room that tests with them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.log.logs import KafkaWorld, World, kafka_world, memory_world


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.broker)])
async def world(request: pytest.FixtureRequest, topic_prefix: str) -> AsyncIterator[World]:
    """A fresh log of each kind."""
    if request.param == "memory":
        async with memory_world() as memory:
            yield memory
    else:
        async with kafka_world(request.getfixturevalue("kafka"), topic_prefix) as kafka:
            yield kafka


@pytest.fixture
async def kafka_log_world(kafka: str, topic_prefix: str) -> AsyncIterator[KafkaWorld]:
    """A fresh log on the run's Kafka."""
    async with kafka_world(kafka, topic_prefix) as world:
        yield world
