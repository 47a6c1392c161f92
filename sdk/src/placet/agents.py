"""The functions that answer the messages to agents, as workers run them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from placet.bodies import is_coroutine_function

if TYPE_CHECKING:
    from placet.turn import AgentFunction

# It takes a `sync.Turn`, which this module cannot name: that one imports it.
BlockingAgentFunction = Callable[[Any], str | None]
AnyAgentFunction: TypeAlias = "AgentFunction | BlockingAgentFunction"
_registered: dict[str, AnyAgentFunction] = {}
REGISTERED: Mapping[str, AnyAgentFunction] = MappingProxyType(_registered)


def register(name: str, function: AnyAgentFunction) -> None:
    """Register the function that answers the messages to an agent.

    Raises:
        TypeError: it is no function that takes the turn.
        ValueError: another function is registered under this name.
    """
    check_takes_turn(name, function)
    if name in _registered:
        raise ValueError(f"the agent {name} has a function already")
    _registered[name] = function


def check_takes_turn(name: str, function: AnyAgentFunction) -> None:
    """Refuse what cannot answer a message, so that it does not fail the first one.

    Raises:
        TypeError: it cannot be called with one turn, or it is a generator function.
    """
    if not callable(function):
        raise TypeError(f"the agent {name} needs a function, not {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"the function of the agent {name} is a generator: use turn.say, and return the last reply"
        )
    try:
        signature = inspect.signature(function)
    except ValueError:
        # Some functions that are not written in Python do not tell it.
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise TypeError(
            f"the function of the agent {name} is called with the turn alone, and takes {signature}: "
            "write def answer(turn)"
        ) from error


def asynchronous(agents: Mapping[str, AnyAgentFunction]) -> Mapping[str, AgentFunction]:
    """The functions, if all of them are coroutine functions and there is one.

    Raises:
        ValueError: there is none.
        TypeError: one of them would block the event loop, or does not take a turn.
    """
    if not agents:
        raise ValueError('no agent is registered: decorate its function with @placet.agent("name")')
    for name, function in agents.items():
        check_takes_turn(name, function)
        if not is_coroutine_function(function):
            raise TypeError(f"the function of the agent {name} must be an async def here: use Placet.serve")
    return cast("Mapping[str, AgentFunction]", agents)
