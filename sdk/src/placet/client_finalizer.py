"""The end of a synchronous client, closed or forgotten: its connections and its thread end with it."""

from __future__ import annotations

import logging
import weakref

from placet.client import AsyncPlacet
from placet.config import shown_address
from placet.loopthread import LoopThread

CLOSE_S = 2.0

_log = logging.getLogger(__name__)


class ClientFinalizer:
    """Shared by a client and all of its parts: once none of them refers to it, connections and thread end."""

    def __init__(self, inner: AsyncPlacet, thread: LoopThread) -> None:
        self._forgotten = weakref.finalize(self, _end_forgotten, inner, thread)

    def end(self) -> None:
        """End them, and wait until they have ended; harmless when repeated, and in a fork, which has none of them."""
        if (left := self._forgotten.detach()) is not None:
            _, _, (inner, thread), _ = left
            if not thread.has_ended():
                _shut(inner, thread)


def _end_forgotten(inner: AsyncPlacet, thread: LoopThread) -> None:
    """End a client that was collected, or that is left when the interpreter ends.

    The collector runs on any thread. On the client's own one, waiting is impossible; on the thread of another event
    loop, such as another client's, waiting would stop all that runs there.
    """
    if thread.has_ended():
        return
    if thread.may_wait():
        _shut(inner, thread)
    else:
        thread.stop_after(inner.close, CLOSE_S)


def _shut(inner: AsyncPlacet, thread: LoopThread) -> None:
    try:
        thread.run(inner.close, CLOSE_S)
    except TimeoutError:
        # A gateway that does not answer the end of its connection does no harm, and an error here
        # would replace one that the caller's block has raised. Stopping the thread drops the connection.
        _log.debug("%s did not answer the end of the connection in time", shown_address(inner.url))
    finally:
        thread.stop()
