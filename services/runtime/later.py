"""What a decider needs only for some decisions: loaded beside its work, once its partitions have their writers.

A process that was killed is back sooner without it. A decision that needs some of it earlier loads it itself.
"""

import asyncio
from importlib import import_module

# SQL's grammars, JSON Schema and tokens: none of them is needed to claim a partition, or to expire a hold.
LATER = ("services.domain.policy.sql", "schemas.json_schema", "schemas.token")


class Later:
    """Loads it, once."""

    def __init__(self) -> None:
        self._loading: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Load it on a thread, unless it is loaded or being loaded."""
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(load), name="later")

    async def loaded(self) -> None:
        """Load it, and wait until it is loaded."""
        self.begin()
        if self._loading is not None:
            await asyncio.shield(self._loading)


def load() -> None:
    """Load it here and now."""
    for name in LATER:
        import_module(name)
