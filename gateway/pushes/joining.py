"""The last step of catching up: how much may be sent at once to a reader that becomes live with it."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.live.facts import Group

# All of it is sent in one turn of the event loop, in which nothing is taken from the reader's queue. A queue that has
# room has less than half of its limits waiting.
JOIN_GROUPS = 50
JOIN_BYTES = 1024 * 1024


def can_join(groups: Sequence[tuple[Group, int]]) -> bool:
    """Return True if these groups are so few and short that a reader with room can get them at once."""
    return len(groups) <= JOIN_GROUPS and sum(group.size_bytes() for group, _ in groups) <= JOIN_BYTES
