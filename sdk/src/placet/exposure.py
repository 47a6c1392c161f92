"""Whether this process has sensitive values: then, what an exception says is not recorded, only its type.

A text can contain a value in more forms than can be searched for: a number, a part of a URL, an escaped or encoded
text. So nothing is searched for. Values can be anywhere in the process, so those of one run count for every run of
the client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from placet.errors import NotFound, PlacetError
from placet.secrets import has_marks, has_placeholder

# Returns the published inputSchema of a tool.
ReadSchema = Callable[[str], Awaitable[Any]]


class Exposure:
    """What a client knows of the sensitive values that it has sent or received."""

    def __init__(self) -> None:
        self._is_certain = False
        # The number of proposals without an answer, by tool.
        self._doubted: Counter[str] = Counter()

    def add(self) -> None:
        """Note that a sensitive value was sent or received."""
        self._is_certain = True

    def doubt(self, tool: str) -> None:
        """Note that a call of a tool is proposed: its arguments may be sensitive."""
        self._doubted[tool] += 1

    def settle(self, tool: str, arguments: Any) -> None:
        """Note the arguments in the answer to a proposal: a placeholder stands for a sensitive value."""
        self._doubted[tool] -= 1
        if self._doubted[tool] <= 0:
            del self._doubted[tool]
        if has_placeholder(arguments):
            self.add()

    async def is_exposed(self, read_schema: ReadSchema) -> bool:
        """Returns True if an exception's text can contain a sensitive value, or if that cannot be found out now."""
        for tool in tuple(self._doubted):
            if self._is_certain:
                break
            try:
                marked = has_marks(await read_schema(tool))
            except NotFound:
                # A tool that is not published has no sensitive arguments.
                marked = False
            except PlacetError:
                return True
            self._doubted.pop(tool, None)
            self._is_certain |= marked
        return self._is_certain
