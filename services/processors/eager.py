"""Run a coroutine at once, up to where it first waits, as Python 3.12's eager tasks do."""

from collections.abc import Coroutine, Generator
from typing import Any

_Waiting = Coroutine[Any, Any, None]


class Begun:
    """A coroutine that waits for something; awaited, it goes on from there."""

    def __init__(self, doing: _Waiting, waits_for: Any) -> None:
        self._doing = doing
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        try:
            yield self._waits_for
        except BaseException as error:  # a cancellation belongs to the coroutine, which may still go on
            try:
                self._waits_for = self._doing.throw(error)
            except StopIteration:
                return
            yield from self.__await__()
            return
        yield from self._doing.__await__()


def begin(doing: _Waiting) -> Begun | None:
    """Run a coroutine up to where it first waits.

    Returns:
        None where it ended without waiting.

    Raises:
        Exception: whatever it raises until then.
    """
    try:
        return Begun(doing, doing.send(None))
    except StopIteration:
        return None
