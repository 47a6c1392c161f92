"""What is published: tools, policies, principals. `project` is whose it is, `*` for the whole tenant's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict

from gateway.resources.base import OPEN, FieldError, Resource


class Published(Resource):
    """A published version; `pending` are the partitions that have not adopted it yet.

    `warnings` are what is doubtful about a policy, and how it and the policies in force shadow each other.
    `unchanged`: the version said the same already, so that none was added.
    """

    name: str
    project: str
    version: int
    unchanged: bool
    adopted: bool
    pending: list[int]
    warnings: list[FieldError]
    cursor: str


class Tool(Resource):
    """A published tool: its MCP definition, and its version. One that an older Placet published may have more."""

    model_config = ConfigDict(extra="allow", json_schema_extra={OPEN: True})

    name: str
    title: str | None = None
    description: str | None = None
    inputSchema: dict[str, Any] | None = None
    outputSchema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    idempotent: bool | None = None
    run_timeout_seconds: float | None = None
    lease_seconds: float | None = None
    project: str
    version: int
    tool_version: str
    published_by: str
    published_at: datetime
    cursor: str | None = None


class Principal(Resource):
    """A person or service of the tenant: its accounts, its roles, and the agents that act on its behalf."""

    principal: str
    subjects: list[str]
    roles: list[str]
    agents: list[str]
    disabled: bool
    project: str
    version: int
    published_by: str
    published_at: datetime


class PolicyVersion(Resource):
    """A published version of a policy. Only the newest is in force, and only until somebody retires it."""

    name: str
    project: str
    version: int
    document: dict[str, Any]
    published_by: str
    published_at: datetime
    retired_by: str | None
    retired_at: datetime | None
    retired_reason: str | None
    cursor: str | None = None


class RetiredPolicy(PolicyVersion):
    """A policy that is in force no more; `pending` are the partitions that still judge by it."""

    adopted: bool
    pending: list[int]


class ChangedPolicyRule(Resource):
    """A rule that both versions have; `fields` are the names of what differs."""

    rule: str
    fields: list[str]


class PolicyDifference(Resource):
    """What a document would change; `reordered` are rules that would stand before one that they stand after now."""

    added: list[str]
    removed: list[str]
    changed: list[ChangedPolicyRule]
    reordered: list[str]
    fields: list[str]


class PolicyCheck(Resource):
    """What is wrong or doubtful about a document, and what it would change of the version in force, if any."""

    name: str
    project: str
    in_force: int | None
    problems: list[FieldError]
    difference: PolicyDifference | None
    cursor: str
