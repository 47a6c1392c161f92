"""Dividing a log among processes: partitions are independent of each other."""

from collections.abc import Callable, Sequence
from typing import TypeVar

# With fewer records, another process costs more than it saves.
RECORDS_WORTH_IT = 20_000

Part = TypeVar("Part")


def shares(parts: Sequence[Part], count: int, length: Callable[[Part], int]) -> list[list[Part]]:
    """Divide parts into at most `count` shares of about the same length; those of no length are left out."""
    found: list[list[Part]] = [[] for _ in range(count)]
    for part in sorted(parts, key=length, reverse=True):
        if length(part):
            min(found, key=lambda share: sum(map(length, share))).append(part)
    return [share for share in found if share]
