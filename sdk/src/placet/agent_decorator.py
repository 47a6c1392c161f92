"""`@placet.agent("name")`, with the types that a type checker needs to refuse what is no agent's function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from placet.agents import register
from placet.ids import check_id

if TYPE_CHECKING:
    from placet.sync import Turn
    from placet.turn import AgentFunction

# An `async def` takes an AsyncTurn, any other function a Turn: only then does `await turn.say(…)` fit.
F = TypeVar("F", bound="AgentFunction | Callable[[Turn], str | None]")


def agent(name: str) -> Callable[[F], F]:
    """Register the function that answers the messages to an agent; `Placet.serve` runs it for each of them.

    Args:
        name: the agent's name, under which its token was issued.

    Raises:
        TypeError: no name is given, or what is decorated is no function that takes the turn.
        ValueError: another function is registered under this name.
    """
    if not isinstance(name, str):
        raise TypeError('the agent\'s name is missing: write @placet.agent("name")')
    check_id(name, "agent")

    def registered(function: F) -> F:
        register(name, function)
        return function

    return registered
