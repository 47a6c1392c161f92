"""What a role does not use in a plain stack is not loaded: every start after a crash waits for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ops.role import ALWAYS

# The HTTP client is for webhooks and identity providers, psycopg for PostgreSQL; rich comes with the HTTP client.
UNUSED = ("httpx", "rich", "pygments", "psycopg", "psycopg_pool", "apprise", "sqlglot.optimizer")
PROGRAM = """
import sys
from ops.roles import load_role
load_role(sys.argv[1])
print(*[name for name in sys.argv[2:] if name in sys.modules])
"""


@pytest.mark.parametrize("role", sorted(ALWAYS))
def test_role_loads_nothing_that_a_plain_stack_does_not_use(role: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, role, *UNUSED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
