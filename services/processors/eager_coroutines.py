"""Runs a coroutine at once, up to its first wait, like the eager tasks of Python 3.12."""

from collections.abc import Coroutine, Generator
from typing import Any

_Waiting = Coroutine[Any, Any, None]


class EagerCoroutine:
    """A coroutine that waits for something; awaiting it continues it."""

    def __init__(self, doing: _Waiting, waits_for: Any) -> None:
        self._doing = doing
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        try:
            yield self._waits_for
        except BaseException as error:  # a cancellation is for the coroutine, which may still continue
            try:
                self._waits_for = self._doing.throw(error)
            except StopIteration:
                return
            yield from self.__await__()
            return
        yield from self._doing.__await__()


def start_eagerly(doing: _Waiting) -> EagerCoroutine | None:
    """Run a coroutine up to its first wait.

    Returns:
        None if it ended without waiting.

    Raises:
        Exception: any exception that it raises until then.
    """
    try:
        return EagerCoroutine(doing, doing.send(None))
    except StopIteration:
        return None
