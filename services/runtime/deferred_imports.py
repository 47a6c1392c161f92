"""Modules that a decider needs only for some decisions: loaded in the background, once its partitions have writers.

So a process that was killed is back sooner. A decision that needs one of them earlier imports it itself.
"""

import asyncio
from importlib import import_module

# SQL's grammars, JSON Schema, tokens and the Beta distribution: none of them is needed to claim a partition, or to
# expire a hold.
MODULES = ("services.domain.policy.sql", "schemas.json_schema", "schemas.token", "scipy.special")


class DeferredImports:
    """Loads the modules, once."""

    def __init__(self) -> None:
        self._loading: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Load them on a thread, unless they are loaded or being loaded."""
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(load), name="deferred imports")

    async def loaded(self) -> None:
        """Load them, and wait until they are loaded."""
        self.begin()
        if self._loading is not None:
            await asyncio.shield(self._loading)


def load() -> None:
    """Load them now."""
    for name in MODULES:
        import_module(name)
