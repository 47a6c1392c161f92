"""How long a dead process waits before it is started again."""

from __future__ import annotations

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 10.0


def restart_delay_s(failures: int) -> float:
    """Seconds before the next start after this many failures in a row: doubling, with a ceiling."""
    return float(min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** max(0, failures - 1)))
