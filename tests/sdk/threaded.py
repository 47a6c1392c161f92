"""The scripted peer on a thread of its own, for clients that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.sdk.scripted import DEADLINE_S, Scripted, serving


@contextmanager
def serving_thread(script: Scripted) -> Iterator[Scripted]:
    """Serve a script on loopback from another thread."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with serving(script):
            ready.set()
            await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(DEADLINE_S), "the scripted peer did not start"
    try:
        yield script
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(DEADLINE_S)
