"""The stack that these tests hurt, and who uses it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from placet import Placet
from tests.servers.stack import RunningStack, run_placet

PAY = {
    "name": "send_money",
    "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "number"}}},
    "annotations": {"destructiveHint": True},
}
READ = {"name": "read_file", "annotations": {"readOnlyHint": True}}


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


def token_of(stack: RunningStack, *arguments: str) -> str:
    done = run_placet("token", "issue", "--data-dir", str(stack.data_dir), "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["token"])
