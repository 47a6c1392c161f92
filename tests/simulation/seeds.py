"""Which worlds a run visits."""

from __future__ import annotations

import os

USUAL = 80
CHUNK = 20


def seeds() -> range:
    """The seeds of this run: `PLACET_SEED=n` is exactly one, `PLACET_SEEDS=n` the first n."""
    if only := os.environ.get("PLACET_SEED"):
        return range(int(only), int(only) + 1)
    return range(int(os.environ.get("PLACET_SEEDS", str(USUAL))))


def chunks() -> list[range]:
    """The seeds in parts, each of which is one test."""
    every = seeds()
    return [every[i : i + CHUNK] for i in range(0, len(every), CHUNK)]
