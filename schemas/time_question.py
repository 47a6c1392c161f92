"""A record that yields the broker's time on a partition of the commands.

It is the timer's nudge of an execution that does not exist. It leaves no event; its append time is the result.
"""

from functools import lru_cache

from schemas import envelope
from schemas.commands import ExpireDue
from schemas.ids import derived_id, execution_key
from schemas.record import OutRecord
from schemas.topics import partition_of


def time_question(partition: int, partitions: int) -> OutRecord:
    """The record for a partition of the commands.

    Args:
        partition: its number.
        partitions: the number of partitions.
    """
    key = _key_on(partition, partitions)
    body = ExpireDue(subject_id="", deadline_at_ms=0, attempt=0)
    return envelope.nudge(body, derived_id("what time is it", key.decode()), key)


@lru_cache(maxsize=4096)
def _key_on(partition: int, partitions: int) -> bytes:
    keys = (execution_key("placet", "clock", str(number)) for number in range(1_000 * partitions))
    return next(key for key in keys if partition_of(key, partitions) == partition)
