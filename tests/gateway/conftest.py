"""A whole stack for the tests at the doors, with tokens of everybody who comes in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from gateway.identity.issuer import issue
from tests.servers.stack import RunningStack, running_stack

PARTITIONS = 3
POLICY = """
policy: doors
rules:
  - {id: reads, match: {tools: [read_file, "read-*"]}, then: allow}
  - {id: payments, match: {tools: [send_money]}, then: hold, hold: {timeout_seconds: 3600}}
  - {id: shells, match: {tools: [shell]}, then: deny}
"""
TOOLS: dict[str, dict[str, Any]] = {
    "read_file": {"annotations": {"readOnlyHint": True}},
    "send_money": {
        "annotations": {"destructiveHint": True},
        "inputSchema": {"type": "object", "properties": {"amount": {"type": "number"}}},
    },
    "shell": {"annotations": {"destructiveHint": True}},
}


@dataclass(frozen=True)
class Caller:
    """Somebody with a token, at one gateway."""

    url: str
    token: str
    client: httpx.Client

    def call(
        self, method: str, path: str, body: Any = None, key: str | None = None, **more: Any
    ) -> httpx.Response:
        """One request; `key` is its idempotency key."""
        headers = {"Authorization": f"Bearer {self.token}", **more.pop("headers", {})}
        if key is not None:
            headers["Idempotency-Key"] = key
        if body is not None:
            more["json"] = body
        return self.client.request(method, f"{self.url}{path}", headers=headers, **more)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self.call("POST", path, body, **more)

    def execution(self) -> str:
        """A fresh execution of the caller's agent."""
        execution_id = f"e-{uuid4().hex[:12]}"
        answer = self.post("/v1/executions", {"execution_id": execution_id})
        assert answer.status_code == 201, answer.text
        return execution_id

    def propose(self, execution_id: str, tool: str = "send_money", **more: Any) -> dict[str, Any]:
        """A call of a tool; it is not waited for a person."""
        body = {"call_id": f"c-{uuid4().hex[:12]}", "tool": tool, "arguments": {"amount": 5}, **more}
        answer = self.post(f"/v1/executions/{execution_id}/tool-calls?wait=0", body)
        assert answer.status_code in (200, 202), answer.text
        found: dict[str, Any] = answer.json()
        return found


@dataclass(frozen=True)
class Doors:
    """A running stack and how to come in."""

    stack: RunningStack
    url: str
    client: httpx.Client

    def token(
        self, subject: str, *roles: str, tenant: str = "acme", project: str = "books", **more: Any
    ) -> str:
        return issue(self.stack.data_dir / "keys", subject, roles, tenant, project, **more)

    def caller(self, subject: str, *roles: str, tenant: str = "acme", **more: Any) -> Caller:
        return Caller(self.url, self.token(subject, *roles, tenant=tenant, **more), self.client)

    def publish(self, tenant: str) -> None:
        """The tools and the policy of these tests, for a tenant."""
        operator = self.caller("olga", "operator", tenant=tenant)
        for name, definition in TOOLS.items():
            answer = operator.call("PUT", f"/v1/tools/{name}", definition)
            assert answer.status_code == 200, answer.text
        yaml = {"Content-Type": "application/yaml"}
        answer = operator.call("PUT", "/v1/policies/doors", content=POLICY, headers=yaml)
        assert answer.status_code == 200, answer.text


@pytest.fixture(scope="package")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    directory = tmp_path_factory.mktemp("doors")
    with (
        running_stack(
            directory,
            *("--partitions", str(PARTITIONS), "--audit-head-seconds", "0.5"),
            *("--grpc-port", "0", "--bridge-port", "0"),
        ) as stack,
        httpx.Client(timeout=30) as client,
    ):
        found = Doors(stack, stack.status()["url"], client)
        found.publish("acme")
        found.publish("other")
        yield found


@pytest.fixture
def bot(doors: Doors) -> Caller:
    return doors.caller("bot", "agent", agent="billing")


@pytest.fixture
def anna(doors: Doors) -> Caller:
    return doors.caller("anna", "reviewer")


@pytest.fixture
def admin(doors: Doors) -> Caller:
    return doors.caller("root", "admin")
