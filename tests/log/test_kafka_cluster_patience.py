"""A partition without a leader is waited for longer than a broker that does not answer."""

from typing import Any

import pytest
from aiokafka import errors as kafka_errors

from log.errors import LogUnreachable
from log.kafka import cluster as kafka_cluster
from log.kafka.client import KafkaSettings
from log.kafka.cluster import Cluster
from log.places import TopicPartition

TP = TopicPartition("placet.executions", 0)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster whose connection is there, and that has no patience with what does not answer."""

    async def connected(self: Cluster) -> Any:
        return None

    monkeypatch.setattr(Cluster, "_connected", connected)
    monkeypatch.setattr(kafka_cluster, "RETRY_FOR_S", -1.0)
    monkeypatch.setattr(kafka_cluster, "RETRY_EVERY_S", 0.0)
    return Cluster(KafkaSettings("127.0.0.1:1"))


def answers(monkeypatch: pytest.MonkeyPatch, *said: Exception) -> None:
    left = list(said)

    async def bounds(client: Any, tp: TopicPartition) -> tuple[int, int]:
        if left:
            raise left.pop(0)
        return 0, 7

    monkeypatch.setattr(kafka_cluster, "_ask_bounds", bounds)


@pytest.mark.parametrize(
    "error", [kafka_errors.NotLeaderForPartitionError, kafka_errors.LeaderNotAvailableError]
)
async def test_bounds_of_a_partition_whose_leader_is_not_elected_yet_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster, error: type[Exception]
) -> None:
    answers(monkeypatch, error(), error())
    assert await cluster.bounds(TP) == (0, 7)


async def test_bounds_from_a_broker_that_does_not_answer_are_not_waited_for_as_long(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster
) -> None:
    answers(monkeypatch, kafka_errors.RequestTimedOutError())
    with pytest.raises(LogUnreachable):
        await cluster.bounds(TP)
