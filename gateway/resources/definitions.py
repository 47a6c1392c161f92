"""What is published: tools, policies, principals. `project` is whose it is, `*` for the whole tenant's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gateway.resources.base import Resource


class Published(Resource):
    """A published version; `pending` are the partitions that have not adopted it yet."""

    name: str
    project: str
    version: int
    adopted: bool
    pending: list[int]
    cursor: str


class Tool(Resource):
    """A published tool."""

    name: str
    project: str
    version: int
    tool_version: str
    published_by: str
    published_at: datetime


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
    """A published version of a policy."""

    name: str
    project: str
    version: int
    document: dict[str, Any]
    published_by: str
    published_at: datetime
