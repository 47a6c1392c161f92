"""A damaged SQLite view: the error names its file and the remedy; a projector checks for damage when it starts."""

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

# A view of about a gigabyte is checked before it is served; the check of a larger one continues while it is served.
AHEAD_S = 3.0
MEND = "rebuild it from the log with placet replay --force"


def unavailable(path: Path, what: str, error: BaseException) -> ViewUnavailable:
    """The error of a view that cannot be used: it is damaged, or `what` (`could not be read`) is true for now."""
    if damage.is_damage(error):
        return ViewDamaged(damage.damage_message(f"The view at {path}", error, MEND))
    return ViewUnavailable(f"The view at {path} {what}: {error}")


@contextmanager
def view_errors(path: Path, what: str) -> Iterator[None]:
    """Raise the database's errors as the view's; see `unavailable`."""
    try:
        yield
    except (PersistenceError, sqlite3.Error) as error:
        raise unavailable(path, what, error) from error


async def check_ahead(look: Callable[[], None]) -> asyncio.Future[None]:
    """Check a view in a thread of its own, and wait a moment for the result.

    Args:
        look: raises what it finds; it can take long.

    Returns:
        A future of the result, if it takes longer.

    Raises:
        ViewError: the damage found so far.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[None] = loop.create_future()
    # SQLite's check cannot be interrupted: a process that ends does not wait for this thread.
    threading.Thread(target=_look, args=(look, loop, found), name="look", daemon=True).start()
    await asyncio.wait({found}, timeout=AHEAD_S)
    if found.done():
        found.result()
    else:
        logger.info("the view is large: the check for damage continues in the background")
    return found


def _look(look: Callable[[], None], loop: asyncio.AbstractEventLoop, found: asyncio.Future[None]) -> None:
    error: Exception | None = None
    try:
        look()
    except Exception as raised:
        error = raised
    # The process is ending: nothing waits for the result any more.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, found, error)


def _settle(found: asyncio.Future[None], error: Exception | None) -> None:
    if error is None:
        found.set_result(None)
    else:
        found.set_exception(error)
