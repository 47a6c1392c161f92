"""What the log has to say afterwards: events, the audit trail, agents, reviewers, dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gateway.resources.base import Resource


class Event(Resource):
    """A recorded fact."""

    event_id: str
    type: str
    at: datetime
    version: int
    term: int
    partition: int
    offset: int
    execution_id: str
    command_id: str
    data: dict[str, Any]


class AuditRow(Resource):
    """Who exercised authority, over what, and what came of it."""

    event_id: str
    at: datetime
    subject: str
    action: str
    execution_id: str | None
    call_id: str | None
    hold_id: str | None
    digest: str
    before: Any
    after: Any
    feedback: str
    view_digest: str | None
    dwell_ms: int | None
    result: Any


class AgentTool(Resource):
    """What an agent did with a tool."""

    tool: str
    proposed: int
    allowed: int
    held: int
    denied: int
    approved: int
    edited: int
    rejected: int
    votes: int
    succeeded: int
    failed: int
    unknown: int
    refused: int
    last_seen_at: datetime


class Agent(Resource):
    """An agent and what it did, by tool."""

    agent: str
    tools: list[AgentTool]


class ToolTrust(Resource):
    """How often an agent's calls of a tool came to which end, and what people said of them."""

    tool: str
    successes: int
    failures: int
    unknowns: int
    approvals: int
    edits: int
    rejections: int
    last_evidence_at: datetime


class AgentTrust(Resource):
    """The statistics of docs/trust.md, each partition of the log counted `through` an offset.

    `complete` is false while this gateway is still reading them: then they may say less than is known.
    """

    agent: str
    complete: bool
    through: dict[str, int]
    tools: list[ToolTrust]
    cursor: str | None = None


class Reviewer(Resource):
    """A person who decided holds, and how often which way."""

    reviewer: str
    approved: int
    edited: int
    rejected: int
    answered: int
    last_decided_at: datetime
    average_dwell_ms: int | None


class DeadLetter(Resource):
    """A record that could not be read or believed, and where in the log it stands.

    `key` and `detail` are null where the record is another tenant's.
    """

    id: str
    topic: str
    partition: int
    offset: int
    at: datetime
    key: str | None
    reason: str
    detail: str | None
