"""The functions that answer the messages to agents: registered by `@placet.agent("name")`, run by workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from placet.bodies import is_coroutine_function
from placet.ids import check_id

# Takes a turn and returns the last reply, or None: an `async def` takes an AsyncTurn, any other function a Turn.
AnyAgentFunction = Callable[[Any], Any]
F = TypeVar("F", bound=AnyAgentFunction)
_registered: dict[str, AnyAgentFunction] = {}
REGISTERED: Mapping[str, AnyAgentFunction] = MappingProxyType(_registered)


def agent(name: str) -> Callable[[F], F]:
    """Register the function that answers the messages to an agent; `Placet.serve` runs it for each of them.

    Args:
        name: the agent's name, under which its token was issued.

    Raises:
        ValueError: another function is registered under this name.
    """
    check_id(name, "agent")

    def register(function: F) -> F:
        if name in _registered:
            raise ValueError(f"the agent {name} has a function already")
        _registered[name] = function
        return function

    return register


def asynchronous(agents: Mapping[str, AnyAgentFunction]) -> Mapping[str, AnyAgentFunction]:
    """The functions, if all of them are coroutine functions and there is one.

    Raises:
        ValueError: there is none.
        TypeError: one of them would block the event loop.
    """
    if not agents:
        raise ValueError('no agent is registered: decorate its function with @placet.agent("name")')
    for name, function in agents.items():
        if not is_coroutine_function(function):
            raise TypeError(f"the function of the agent {name} must be an async def here: use Placet.serve")
    return agents
