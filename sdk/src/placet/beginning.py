"""The beginning of a released function: never after its attempt's lease, on whatever thread it was waiting."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from placet.binding import Binding
from placet.bodies import check_has_run, is_coroutine_function
from placet.errors import OutcomeUnknown
from placet.gate import Cleared
from placet.tries import Try

T = TypeVar("T")


class NotBegun(Exception):
    """The lease was over, or could no longer be renewed, before the function began, or the body that it made."""

    def __init__(self, has_made: bool) -> None:
        super().__init__()
        self._has_made = has_made

    def told(self, one: Try, cleared: Cleared) -> OutcomeUnknown:
        """What the caller is told. If nothing was called, the call made again can take the attempt over."""
        one.started = self._has_made
        # The resource is of before the consumption. Nothing is reported: a person, or the tool, may have permitted
        # another attempt since.
        call = replace(cleared.call, status="consumed")
        return OutcomeUnknown(call, "was not begun before its lease was over,")


def check_lease(cleared: Cleared, has_made: bool = False) -> None:
    """Look at the lease right before something begins: the thread, or the whole process, may have been stopped.

    Raises:
        NotBegun: it must not begin.
    """
    if cleared.lease is not None and not cleared.lease.permits_begin():
        raise NotBegun(has_made)


def in_time(cleared: Cleared, call: Callable[[], T]) -> T:
    """Call a function, unless it is too late.

    Raises:
        NotBegun: it is.
    """
    check_lease(cleared)
    return call()


def told_to_a_future(call: Callable[[], T]) -> T:
    """Call a function for a future: a future rejects StopIteration, and its waiter would wait for ever."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error


async def whole(binding: Binding, cleared: Cleared, call: Callable[[], Awaitable[Any]]) -> Any:
    """The result of a function: if it returned a coroutine, this can be its body.

    A task or another awaitable that an `async def` returns is its result, since its body has run.

    Raises:
        NotBegun: it is too late for the function or for that body.
    """
    output = await call()
    has_body = is_coroutine_function(binding.function)
    if inspect.iscoroutine(output) or (inspect.isawaitable(output) and not has_body):
        output = await _body(cleared, output)
    check_has_run(output, binding.name)
    return output


async def _body(cleared: Cleared, made: Awaitable[Any]) -> Any:
    try:
        check_lease(cleared, has_made=True)
    except NotBegun:
        if inspect.iscoroutine(made):
            made.close()
        raise
    return await made
