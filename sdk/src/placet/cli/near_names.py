"""The name that is meant by one that nothing has: of an agent, or of a tool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING

from placet.cli import safe
from placet.cli.session import every
from placet.errors import NotFound, PlacetError

if TYPE_CHECKING:
    from placet.sync import Placet


@contextmanager
def naming_near_agent(placet: Placet, agent: str) -> Iterator[None]:
    """Say of an agent that does not exist which one may be meant."""
    try:
        yield
    except NotFound as error:
        if not (near := near_agent(placet, agent)):
            raise
        raise NotFound(error.code, error.status, f"{error.detail}: {near}", error.fields) from error


def near_agent(placet: Placet, agent: str) -> str:
    """The question whether an agent of a near name is meant; empty if there is none, or this one exists."""
    # Only a hint: what it was asked for is told without it.
    with suppress(PlacetError):
        return _near(agent, (one["agent"] for one in placet.fetch("/agents")["items"]))
    return ""


def near_tool(placet: Placet, tool: str) -> str:
    """The question whether a tool of a near name is meant; empty if there is none, or this one is published."""
    with suppress(PlacetError):
        return _near(tool, (one.name for one in every(lambda cursor: placet.tools.list(cursor=cursor))))
    return ""


def _near(name: str, names: Iterable[str]) -> str:
    known = set(names)
    near = [] if name in known else get_close_matches(name, known, 1)
    return f"did you mean {safe.escaped(near[0])}?" if near else ""
