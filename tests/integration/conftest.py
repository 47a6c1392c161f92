"""One whole stack for the tests that hurt it, with its people and an agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from placet import Placet
from tests.servers.stack import RunningStack, run_placet, running_stack

PAY = {
    "name": "send_money",
    "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "number"}}},
    "annotations": {"destructiveHint": True},
}
READ = {"name": "read_file", "annotations": {"readOnlyHint": True}}
POLICY = """
policy: integration
rules:
  - {id: payments, match: {tools: [send_money]}, then: hold, hold: {timeout_seconds: 3600}}
  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: allow}
"""


@dataclass(frozen=True)
class Site:
    """A running stack with tokens for those who use it."""

    stack: RunningStack
    url: str
    agent_token: str
    reviewer_token: str

    def agent(self) -> Placet:
        return Placet(self.url, token=self.agent_token, agent="bot")

    def reviewer(self) -> Placet:
        return Placet(self.url, token=self.reviewer_token)

    def admin(self) -> Placet:
        return Placet(self.url, token=self.stack.token)


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_stack(tmp_path_factory.mktemp("site"), "--partitions", "3") as stack:
        status: dict[str, Any] = stack.status()
        found = Site(
            stack,
            status["url"],
            _token(stack, "--subject", "bot", "--role", "agent", "--agent", "bot"),
            _token(stack, "--subject", "rita", "--role", "reviewer"),
        )
        with found.admin() as admin:
            admin.tools.put("send_money", PAY)
            admin.tools.put("read_file", READ)
            admin.policies.publish("integration", POLICY)
        yield found


def _token(stack: RunningStack, *arguments: str) -> str:
    done = run_placet("token", "issue", "--data-dir", str(stack.data_dir), "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["token"])
