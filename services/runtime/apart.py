"""Where work is done that may take long: in place, or on a thread beside the event loop.

Reading a definition is such work: whoever writes a policy decides how long compiling it takes. No result of it can be
handed over by another process, so a decider does it on a thread. What is done there holds the interpreter for a few
milliseconds at a time (one pattern, one condition), and others get their turn between.
"""

import asyncio
from collections.abc import Awaitable, Callable

Work = Callable[[], None]
# Does work, and returns when it is done; what it raises is raised.
Apart = Callable[[Work], Awaitable[None]]


async def in_place(work: Work) -> None:
    """Do it here and now, without letting others in between."""
    work()


async def on_thread(work: Work) -> None:
    """Do it on a thread. Whoever is cancelled meanwhile must not use again what the work changes."""
    await asyncio.to_thread(work)
