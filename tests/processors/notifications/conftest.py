"""A log of one's own on the shared Kafka, and the notifier that reads it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ops.topics import ensure_topics
from schemas.topics import Topics
from tests.processors.notifications.role import NotifierRole

PARTITIONS = 2


@pytest.fixture
async def role(kafka: str, topic_prefix: str, tmp_path: Path) -> AsyncIterator[NotifierRole]:
    """The notifier on fresh topics of two partitions; not started."""
    topics = Topics(topic_prefix)
    await ensure_topics(kafka, topics=topics, partitions=PARTITIONS)
    found = NotifierRole(kafka, topics, PARTITIONS, tmp_path)
    try:
        yield found
    finally:
        found.end()
