"""What the checker keeps of a turn of a conversation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class TurnSeen:
    """What the log says of one turn of a conversation so far."""

    state: str = ""
    attempt_id: str = ""
    by: str = ""
    lease_until_ms: int = 0
    replies: int = 0
    hold_id: str = ""
