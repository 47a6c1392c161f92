from __future__ import annotations

import time

import pytest

from gateway.components import kafka_component
from gateway.kafka.cluster import broker_addresses, check_topics
from log.errors import PartitionsDiffer, TopicMissing
from log.kafka.client import KafkaSettings
from ops.ports import free_port
from schemas.topics import Topics
from tests.conftest import TEST_PARTITIONS


@pytest.mark.broker
async def test_check_topics_of_this_installation_passes(kafka: str, topics: Topics) -> None:
    await check_topics(KafkaSettings(kafka), topics, TEST_PARTITIONS)


@pytest.mark.broker
@pytest.mark.parametrize("partitions", [1, TEST_PARTITIONS - 1, TEST_PARTITIONS + 1])
async def test_check_topics_with_another_count_says_which_to_start_with(
    kafka: str, topics: Topics, partitions: int
) -> None:
    with pytest.raises(PartitionsDiffer, match=f"start with --partitions {TEST_PARTITIONS}"):
        await check_topics(KafkaSettings(kafka), topics, partitions)


@pytest.mark.broker
async def test_check_topics_that_do_not_exist_names_the_first(kafka: str) -> None:
    with pytest.raises(TopicMissing, match=r"nobodys\.commands or one of its partitions does not exist"):
        await check_topics(KafkaSettings(kafka), Topics("nobodys"), TEST_PARTITIONS)


@pytest.mark.broker
async def test_kafka_component_has_the_brokers_addresses(kafka: str) -> None:
    assert await broker_addresses(KafkaSettings(kafka)) == [kafka]
    found = await kafka_component(KafkaSettings(kafka))
    assert (found["name"], found["state"], found["address"]) == ("kafka", "ready", kafka)


async def test_kafka_component_whose_brokers_are_away_is_unreachable_soon() -> None:
    began = time.monotonic()
    address = f"127.0.0.1:{free_port()}"
    found = await kafka_component(KafkaSettings(address))
    assert (found["state"], found["address"]) == ("unreachable", address)
    assert time.monotonic() - began < 10
