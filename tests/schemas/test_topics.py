"""A key must find the partition that Kafka's own Java client gives it."""

from __future__ import annotations

import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as st

from schemas.topics import MAX_MESSAGE_BYTES, Topics, murmur2, partition_of

# org.apache.kafka.common.utils.UtilsTest.testMurmur2; Java's ints, so the sign is cut off as toPositive does.
KAFKA_VECTORS = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


@pytest.mark.parametrize(("key", "java_hash"), KAFKA_VECTORS)
def test_murmur2_of_kafkas_own_vectors_is_the_same(key: bytes, java_hash: int) -> None:
    assert murmur2(key) == java_hash & 0x7FFFFFFF


@given(st.binary(max_size=200), st.integers(1, 1000))
def test_partition_of_any_key_is_the_clients(key: bytes, partitions: int) -> None:
    assert partition_of(key, partitions) == (aiokafka_murmur2(key) & 0x7FFFFFFF) % partitions


def test_specs_with_a_prefix_name_each_topic_once() -> None:
    names = [spec.name for spec in Topics("acme").specs()]
    assert len(set(names)) == len(names)
    assert all(name.startswith("acme.") for name in names)


def test_specs_of_the_truth_never_lose_a_record() -> None:
    specs = {spec.name: spec for spec in Topics().specs()}
    for name in ("placet.executions", "placet.definitions", "placet.learning"):
        assert (specs[name].cleanup_policy, specs[name].retention_ms) == ("delete", -1)


def test_specs_of_commands_take_their_time_from_the_broker() -> None:
    stamped = {spec.name for spec in Topics().specs() if spec.log_append_time}
    assert stamped == {"placet.commands", "placet.definition-commands"}


def test_message_ceiling_leaves_room_for_the_largest_decision() -> None:
    from schemas.limits import DECISION_MAX_BYTES, ROUND_MAX_BYTES

    assert DECISION_MAX_BYTES + ROUND_MAX_BYTES < MAX_MESSAGE_BYTES
