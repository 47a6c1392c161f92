"""Two ways to run work that may take long: in place, or on a thread next to the event loop.

Reading a definition is such work: the author of a policy determines how long compiling it takes. Another process
could not hand over the result, so a decider compiles on a thread. The work holds the interpreter lock for a few
milliseconds at a time (one pattern, one condition), and other tasks run in between.
"""

import asyncio
from collections.abc import Awaitable, Callable

Work = Callable[[], None]
# Runs work and returns when it is done; its exceptions are raised.
Offload = Callable[[Work], Awaitable[None]]


async def in_place(work: Work) -> None:
    """Run the work now, without letting other tasks run in between."""
    work()


async def on_thread(work: Work) -> None:
    """Run the work on a thread. A caller that is cancelled meanwhile must not reuse state that the work changes."""
    await asyncio.to_thread(work)
