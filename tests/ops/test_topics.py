"""Topics are created once, validated always, and a wrong cluster is a sentence, not a stack trace."""

from __future__ import annotations

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from ops.errors import KafkaUnreachableError, TopicMismatchError, TopicMissingError
from ops.ports import free_port
from ops.topics import admin_client, check_partitions, ensure_topics, partition_counts, validate_topics
from schemas.topics import Topics
from tests.conftest import TEST_PARTITIONS

pytestmark = pytest.mark.broker


async def _settings(admin: AIOKafkaAdminClient, topic: str) -> dict[str, str]:
    responses = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    entries = responses[0].resources[0][4]
    return {entry[0]: entry[1] for entry in entries}


async def test_ensure_topics_fresh_cluster_creates_every_topic(kafka: str, topics: Topics) -> None:
    async with admin_client(kafka) as admin:
        counts = await partition_counts(admin, [spec.name for spec in topics.specs()])
    assert counts == {spec.name: spec.partitions or TEST_PARTITIONS for spec in topics.specs()}


async def test_ensure_topics_settings_follow_the_design(kafka: str, topics: Topics) -> None:
    async with admin_client(kafka) as admin:
        commands = await _settings(admin, topics.commands)
        executions = await _settings(admin, topics.executions)
        trust = await _settings(admin, topics.trust)
    assert commands["message.timestamp.type"] == "LogAppendTime"
    assert commands["retention.ms"] == str(7 * 24 * 3600 * 1000)
    assert executions["retention.ms"] == "-1"
    assert executions["message.timestamp.type"] == "CreateTime"
    assert trust["cleanup.policy"] == "compact"


async def test_ensure_topics_repeated_changes_nothing(kafka: str, topics: Topics) -> None:
    await ensure_topics(kafka, topics=topics, partitions=TEST_PARTITIONS)
    await validate_topics(kafka, topics=topics, partitions=TEST_PARTITIONS)


async def test_ensure_topics_other_partition_count_is_refused(kafka: str, topics: Topics) -> None:
    with pytest.raises(TopicMismatchError, match=f"start with --partitions {TEST_PARTITIONS}"):
        await ensure_topics(kafka, topics=topics, partitions=TEST_PARTITIONS + 1)


async def test_validate_topics_missing_topic_names_it(kafka: str, topic_prefix: str) -> None:
    with pytest.raises(TopicMissingError, match=f"{topic_prefix}.commands does not exist"):
        await validate_topics(kafka, topics=Topics(prefix=topic_prefix), partitions=1)


async def test_validate_topics_unreachable_cluster_says_what_to_do() -> None:
    with pytest.raises(KafkaUnreachableError, match="right --bootstrap-servers"):
        await validate_topics(f"127.0.0.1:{free_port()}")


def test_check_partitions_one_partition_topic_ignores_the_installations_count() -> None:
    specs = [spec for spec in Topics().specs() if spec.partitions == 1]
    there = {spec.name: 1 for spec in specs}
    check_partitions(specs, there, 12)
    with pytest.raises(TopicMismatchError):
        check_partitions(specs, dict.fromkeys(there, 12), 12)
