"""One world in memory and one on Kafka, for the tests that both must pass."""

from __future__ import annotations

from tests.log.worlds import kafka_log_world, world

__all__ = ["kafka_log_world", "world"]
