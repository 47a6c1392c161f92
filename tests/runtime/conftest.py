"""Laboratories: workers on a log of each kind."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest

from log.memory.log import MemoryLog
from schemas.topics import Topics
from tests.log.logs import PARTITIONS, World
from tests.log.worlds import kafka_log_world, world
from tests.runtime.lab import Lab

__all__ = ["kafka_log_world", "world"]

START_MS = 1_780_000_000_000


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
