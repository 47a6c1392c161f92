"""Published definitions: tools, policies, principals. `project` is the owner, `*` for the whole tenant."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict

from gateway.resources.base import OPEN, FieldError, Resource


class Published(Resource):
    """A published version; `pending` are the partitions that have not adopted it yet.

    `warnings` are the doubtful parts of a policy, and how it and the policies in force shadow each other.
    `unchanged`: the newest version had the same content, so no version was added.
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
    """A published tool: its MCP definition and version. One published by an older Placet can have more fields."""

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
    """A published version of a policy. Only the newest version is in force, and only until it is retired."""

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
    """A policy that is no longer in force; `pending` are the partitions that still use it."""

    adopted: bool
    pending: list[int]


class ChangedPolicyRule(Resource):
    """A rule that both versions have; `fields` are the names of the fields that differ."""

    rule: str
    fields: list[str]


class ChangedPolicyValue(Resource):
    """A value that the document would change, as JSON: of a rule, or of the document (`rule` is empty).

    `place` are the names that lead to it, joined by dots; `null` stands where there is none.
    """

    rule: str
    place: str
    before: str
    after: str


class PolicyDifference(Resource):
    """The changes that a document would make; `reordered` are rules that would precede one that they now follow."""

    added: list[str]
    removed: list[str]
    changed: list[ChangedPolicyRule]
    reordered: list[str]
    fields: list[str]
    values: list[ChangedPolicyValue]


class PolicyCheck(Resource):
    """The errors and warnings of a document, and its differences from the version in force, if there is one."""

    name: str
    project: str
    in_force: int | None
    problems: list[FieldError]
    difference: PolicyDifference | None
    cursor: str
