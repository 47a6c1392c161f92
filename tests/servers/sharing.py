"""Which tests run in one process of several: those that share servers.

pytest-xdist's own groups (`--dist loadgroup`) are not seen by the pytest that is pinned here: 3.8 writes them to
where 9.2 keeps no node id any more.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

# Packages whose tests share a whole stack.
STACKS = ("tests/gateway", "tests/integration")
# What takes longest goes first, whatever its number of tests: at the end, one process would have it alone.
LONGEST = (
    "tests/integration",
    "tests/gateway",
    "tests/e2e",
    "tests/ops/test_stack",
    "tests/ops/bench",
    "tests/processors",
    "tests/ops",
)


class ByServers(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a package that has a stack go to one process, others by module."""

    def _split_scope(self, nodeid: str) -> str:
        package = "/".join(nodeid.split("/")[:2])
        return package if package in STACKS else nodeid.split("::")[0]

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=rank), last=False)
        super()._assign_work_unit(node)


def rank(scope: str) -> int:
    """The place of a package or a module in the order in which they begin."""
    ranks = (number for number, begin in enumerate(LONGEST) if scope.startswith(begin))
    return next(ranks, len(LONGEST))
