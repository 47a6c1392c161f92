"""The lag of an aiokafka consumer, without another request to the broker."""

from __future__ import annotations

from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, TopicPartition


def progress(consumer: AIOKafkaConsumer, partitions: Iterable[TopicPartition]) -> tuple[int, int]:
    """The progress of a consumer in some of its partitions.

    It uses the consumer's own positions, which also move over offsets without a record (control records).

    Returns:
        The sum of its positions, and how many more offsets the broker is known to have.
    """
    assignment = consumer._subscription.subscription.assignment if consumer.assignment() else None
    reached = behind = 0
    for tp in partitions:
        if assignment is None or tp not in assignment.tps:
            continue
        state = assignment.state_value(tp)
        if state.has_valid_position:
            reached += state.position
            end = consumer.highwater(tp)
            behind += max(0, end - state.position) if end is not None else 0
    return reached, behind


def held_back(consumer: AIOKafkaConsumer, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The partitions with an open transaction, and the first offset that it keeps from readers."""
    assigned = consumer.assignment()
    found = {}
    for tp in partitions:
        # Both are from the answer to the last fetch.
        stable, end = (
            (consumer.last_stable_offset(tp), consumer.highwater(tp)) if tp in assigned else (None, None)
        )
        if stable is not None and end is not None and 0 <= stable < end:
            found[tp] = stable
    return found
