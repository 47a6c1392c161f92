"""Partitions and their bounds."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class Bounds(NamedTuple):
    """The first offset of a partition, and one past the last; equal if it is empty."""

    first: int
    end: int
