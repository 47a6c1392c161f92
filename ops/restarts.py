"""How long a dead process waits before it is started again, and how its end is told."""

from __future__ import annotations

# A process that was killed from outside is back at once, also if it is killed again; one that cannot start waits.
AT_ONCE = 3
FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 10.0
# What worked for so long has no failures behind it.
HEALTHY_AFTER_S = 30.0


def restart_delay_s(failures: int) -> float:
    """Seconds before the next start after so many failures in a row: none at first, then doubling, with a ceiling."""
    if failures <= AT_ONCE:
        return 0.0
    return float(min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** (failures - AT_ONCE - 1)))


def describe_exit(code: int) -> str:
    """An exit code in words."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"
