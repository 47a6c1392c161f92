"""A log of one's own on the shared Kafka, and the role that counts it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ops.topics import ensure_topics
from schemas.topics import Topics
from tests.processors.role import Role

PARTITIONS = 3


@pytest.fixture
async def role(kafka: str, topic_prefix: str, tmp_path: Path) -> AsyncIterator[Role]:
    """The trust role on fresh topics of three partitions; not started."""
    topics = Topics(topic_prefix)
    await ensure_topics(kafka, topics=topics, partitions=PARTITIONS)
    found = Role(kafka, topics, PARTITIONS, tmp_path)
    try:
        yield found
    finally:
        found.end()
