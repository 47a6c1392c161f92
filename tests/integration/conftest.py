"""One whole stack for the tests that hurt it, with its people and an agent, and a tenant for each module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.doors import Tenant, new_tenant
from tests.integration.site import PAY, READ, Site, token_of
from tests.servers.stack import running_stack

POLICY = """
policy: integration
rules:
  - {id: payments, match: {tools: [send_money]}, then: hold, hold: {timeout_seconds: 3600}}
  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: allow}
"""


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_stack(tmp_path_factory.mktemp("site"), "--partitions", "3", "--grpc-port", "0") as stack:
        status: dict[str, Any] = stack.status()
        found = Site(
            stack,
            status["url"],
            token_of(stack, "--subject", "bot", "--role", "agent", "--agent", "bot"),
            token_of(stack, "--subject", "rita", "--role", "reviewer"),
        )
        with found.admin() as admin:
            admin.tools.put("send_money", PAY)
            admin.tools.put("read_file", READ)
            admin.policies.publish("integration", POLICY)
        yield found


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    """A tenant of the module's own, in which payments are held and reads pass."""
    with new_tenant(site) as found:
        yield found
