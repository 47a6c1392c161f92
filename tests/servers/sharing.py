"""Which tests run in one process of several: those that share servers.

pytest-xdist's own groups (`--dist loadgroup`) are not seen by the pytest that is pinned here: 3.8 writes them to
where 9.2 keeps no node id any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from _pytest.nodeid import NodeId
from xdist.scheduler import LoadScopeScheduling

# Packages whose tests share a whole stack.
STACKS = ("tests/gateway", "tests/integration")


class ByServers(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a package that has a stack go to one process, others by module."""

    def _split_scope(self, nodeid: str) -> str:
        package = "/".join(nodeid.split("/")[:2])
        return package if package in STACKS else nodeid.split("::")[0]


def tell_apart(items: Sequence[pytest.Item]) -> None:
    """Number the tests that a library made under one id: of those, pytest-xdist would run one alone."""
    made = Counter[str]()
    for item in items:
        name = item.nodeid
        made[name] += 1
        if made[name] > 1:
            item._id = NodeId.parse(f"{name}[{made[name]}]")
