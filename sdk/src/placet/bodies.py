"""When a function's body runs: when it is called, when its result is awaited, or when its result is consumed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


class CannotBeGated(TypeError):
    """A function cannot be gated in this way; the message says what to write instead."""


INSTEAD = "return a list, or gate the function that consumes it"


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Returns True if calling it makes a coroutine: `async def`, also as a partial or as an object's `__call__`."""
    return any(map(inspect.iscoroutinefunction, _what_runs(function)))


def check_runs_when_called(function: Callable[..., Any], name: str) -> None:
    """Refuse a function whose body runs only when its result is consumed, after the call was reported.

    Raises:
        CannotBeGated: it is a generator function, asynchronous or not.
    """
    if any(
        inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in _what_runs(function)
    ):
        raise CannotBeGated(
            f"{name} is a generator function, whose body runs after its call was reported: {INSTEAD}"
        )


def check_has_run(output: Any, name: str) -> None:
    """Refuse an output that is the body itself, not yet run, and close it.

    Raises:
        TypeError: it is a generator or a coroutine.
    """
    if inspect.isgenerator(output) or inspect.iscoroutine(output):
        output.close()
    elif not inspect.isasyncgen(output):
        return
    kind = type(output).__name__.replace("_", " ")
    raise TypeError(
        f"{name} returned a {kind}, whose body has not run (to its end), and never will: {INSTEAD}"
    )


def _what_runs(function: Callable[..., Any]) -> tuple[Any, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    return function, getattr(type(function), "__call__", None)  # noqa: B004 - what an object runs when it is called
