"""What an agent says: a text, and none in which an `await` is missing."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

# How Python writes a coroutine into a text, such as an f-string.
_COROUTINE = re.compile(r"<coroutine object ([\w.<>]+) at 0x[0-9A-Fa-f]+>")
# The classes whose methods an agent awaits. A model can write of any other coroutine, and means it.
_OURS = frozenset(
    {"AsyncConversations", "AsyncExecution", "AsyncExecutions", "AsyncRequests", "AsyncTurn", "HITLHandler"}
)


def checked_reply(said: Any, function: Callable[..., Any] | None = None) -> str | None:
    """What an agent's function returned, if it is a reply.

    Args:
        said: what it returned, or says before it returns.
        function: the function; a coroutine of its module is known by its name.

    Raises:
        TypeError: it is no text, or a text with a coroutine that was never awaited.
    """
    if inspect.iscoroutine(said):
        said.close()
        raise TypeError(_unawaited(said.__qualname__))
    if said is None:
        return None
    if not isinstance(said, str):
        raise TypeError(
            f"a reply is a text or None, and the agent gave a value of the type {type(said).__name__}"
        )
    known = _OURS | getattr(function, "__globals__", {}).keys()
    for match in _COROUTINE.finditer(said):
        if match[1].partition(".")[0] in known:
            raise TypeError(_unawaited(match[1]))
    return said


def _unawaited(name: str) -> str:
    return f"the agent's reply has {name}(…) in place of what it returns: an await is missing before it"
