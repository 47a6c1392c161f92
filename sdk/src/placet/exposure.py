"""Where this process has sensitive values: there, what an exception says is not recorded, only its type.

A text can contain a value in more forms than can be searched for: a number, a part of a URL, an escaped or encoded
text. So nothing is searched for.
"""

from __future__ import annotations

MOST_EXECUTIONS = 100_000


class Exposure:
    """The executions in which a client has sent or received sensitive values; can be used from any thread."""

    def __init__(self) -> None:
        self._executions: set[str] = set()
        self._everywhere = False

    def __contains__(self, execution_id: str) -> bool:
        return self._everywhere or execution_id in self._executions

    def add(self, execution_id: str) -> None:
        """Note the values of a call: its execution uses them. Of too many executions, all count as exposed."""
        if len(self._executions) < MOST_EXECUTIONS:
            self._executions.add(execution_id)
        else:
            self.add_everywhere()

    def add_everywhere(self) -> None:
        """Note values that any execution of the process can use, as it does environment variables."""
        self._everywhere = True
