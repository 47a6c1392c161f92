"""Which tests run in one process of several: those that share servers.

pytest-xdist's own groups (`--dist loadgroup`) are not seen by the pytest that is pinned here: 3.8 writes them to
where 9.2 keeps no node id any more.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

# Packages whose tests share a whole stack.
STACKS = ("tests/gateway", "tests/integration")


class ByServers(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a package that has a stack go to one process, others by module."""

    def _split_scope(self, nodeid: str) -> str:
        package = "/".join(nodeid.split("/")[:2])
        return package if package in STACKS else nodeid.split("::")[0]
