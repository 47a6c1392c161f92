"""One world in memory and one on Kafka, for the tests that both must pass."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest

from log.memory.log import MemoryLog
from schemas.topics import Topics
from tests.log.logs import PARTITIONS, KafkaWorld, World, kafka_world, memory_world
from tests.runtime.lab import Lab

START_MS = 1_780_000_000_000


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


@pytest.fixture
async def lab(world: World, seed: int) -> AsyncIterator[Lab]:
    """A laboratory on either log, with no worker started yet."""
    laboratory = Lab(world.log, PARTITIONS, random.Random(seed))
    try:
        yield laboratory
    finally:
        await laboratory.close()


@pytest.fixture
async def memory_lab(seed: int) -> AsyncIterator[Lab]:
    """A laboratory of one partition in memory, whose time stands still."""
    laboratory = Lab(MemoryLog(Topics(), 1, lambda: START_MS), 1, random.Random(seed))
    try:
        yield laboratory
    finally:
        await laboratory.close()
