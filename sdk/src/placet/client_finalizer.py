"""The end of a synchronous client, closed or forgotten: its connections and its thread end with it."""

from __future__ import annotations

import asyncio
import logging
import weakref
from functools import partial
from typing import Protocol

from placet.config import shown_address
from placet.loopthread import LoopThread

CLOSE_S = 2.0

_log = logging.getLogger(__name__)


class Closing(Protocol):
    """A client that is closed at the end.

    Attributes:
        url: the gateway's.
    """

    url: str

    async def close(self) -> None:
        """Close every connection."""


class Ending(Protocol):
    """Something that is ended before the client."""

    async def end(self) -> None:
        """End it, on the client's thread."""


class ClientFinalizer:
    """Shared by a client and all of its parts: once none of them refers to it, connections and thread end."""

    def __init__(self, inner: Closing, thread: LoopThread) -> None:
        # Those that are read; they end first, while their connections can still be closed in order.
        self.streams: set[Ending] = set()
        self._forgotten = weakref.finalize(self, _end_forgotten, inner, thread, self.streams)

    def end(self) -> None:
        """End them, and wait until they have ended; harmless when repeated, and in a fork, which has none of them."""
        if (left := self._forgotten.detach()) is not None:
            _, _, (inner, thread, streams), _ = left
            if not thread.has_ended():
                _shut(inner, thread, streams)


def _end_forgotten(inner: Closing, thread: LoopThread, streams: set[Ending]) -> None:
    """End a client that was collected, or that is left when the interpreter ends.

    The collector runs on any thread. On the client's own one, waiting is impossible; on the thread of another event
    loop, such as another client's, waiting would stop all that runs there.
    """
    if thread.has_ended():
        return
    if thread.may_wait():
        _shut(inner, thread, streams)
    else:
        thread.stop_after(partial(_close, inner, streams), CLOSE_S)


def _shut(inner: Closing, thread: LoopThread, streams: set[Ending]) -> None:
    try:
        thread.run(partial(_close, inner, streams), CLOSE_S)
    except TimeoutError:
        # A gateway that does not answer the end of its connection does no harm, and an error here
        # would replace one that the caller's block has raised. Stopping the thread drops the connection.
        _log.debug("%s did not answer the end of the connection in time", shown_address(inner.url))
    finally:
        thread.stop()


async def _close(inner: Closing, streams: set[Ending]) -> None:
    await asyncio.gather(*(stream.end() for stream in tuple(streams)), return_exceptions=True)
    await inner.close()
