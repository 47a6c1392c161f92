"""A SQLite view that is damaged: told with its file and the way out, and looked for where a projector starts."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eventsourcing.persistence import PersistenceError

from projections.store.port import ViewDamaged, ViewUnavailable
from vitals import damage

logger = logging.getLogger(__name__)

# A view of about a gigabyte is looked over before it is served; a larger one goes on being looked over beside that.
AHEAD_S = 3.0
MEND = "make it anew from the log with placet replay --force"


def unavailable(path: Path, what: str, error: BaseException) -> ViewUnavailable:
    """What keeps a view from being used: that it is damaged, or that `what` (`could not be read`) for the moment."""
    if damage.is_damage(error):
        return ViewDamaged(damage.told(f"The view at {path}", error, MEND))
    return ViewUnavailable(f"The view at {path} {what}: {error}")


@contextmanager
def told(path: Path, what: str) -> Iterator[None]:
    """Tell the database's errors as the view's; see `unavailable`."""
    try:
        yield
    except (PersistenceError, sqlite3.Error) as error:
        raise unavailable(path, what, error) from error


async def look_ahead(look: Callable[[], None]) -> asyncio.Future[None]:
    """Look a view over in a thread of its own, and wait a moment for what it finds.

    Args:
        look: raises what it finds; it may take long.

    Returns:
        What it will find, where it takes longer.

    Raises:
        ViewError: what it has found by now.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[None] = loop.create_future()
    # Nobody can interrupt SQLite's look: a process that ends does not wait for this thread.
    threading.Thread(target=_look, args=(look, loop, found), name="look", daemon=True).start()
    await asyncio.wait({found}, timeout=AHEAD_S)
    if found.done():
        found.result()
    else:
        logger.info("the view is large: whether it is damaged is looked for beside the work")
    return found


def _look(look: Callable[[], None], loop: asyncio.AbstractEventLoop, found: asyncio.Future[None]) -> None:
    error: Exception | None = None
    try:
        look()
    except Exception as raised:
        error = raised
    # The process ends: nobody asks any more.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, found, error)


def _settle(found: asyncio.Future[None], error: Exception | None) -> None:
    if error is None:
        found.set_result(None)
    else:
        found.set_exception(error)
