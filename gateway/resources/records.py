"""Records and statistics from the log: events, the audit trail, agents, reviewers, dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gateway.resources.base import Resource


class Event(Resource):
    """A recorded event."""

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
    """An act of authority: the subject, the object, and the result."""

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
    """An agent's activity with a tool."""

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
    """An agent's activity, by tool."""

    agent: str
    tools: list[AgentTool]


class ToolTrust(Resource):
    """The number of an agent's calls of a tool by outcome, and of people's decisions on them."""

    tool: str
    successes: int
    failures: int
    unknowns: int
    approvals: int
    edits: int
    rejections: int
    last_evidence_at: datetime


class AgentTrust(Resource):
    """The statistics of docs/trust.md; `through` is, per partition of the log, the last offset that is counted.

    `complete` is false while this gateway is still reading them: then the numbers may be too low.
    """

    agent: str
    complete: bool
    through: dict[str, int]
    tools: list[ToolTrust]
    cursor: str | None = None


class Reviewer(Resource):
    """A person who decided holds, with the number of decisions of each kind."""

    reviewer: str
    approved: int
    edited: int
    rejected: int
    answered: int
    last_decided_at: datetime
    average_dwell_ms: int | None


class DeadLetter(Resource):
    """A record that could not be read or verified, and its position in the log.

    `key` and `detail` are null if the record belongs to another tenant.
    """

    id: str
    topic: str
    partition: int
    offset: int
    at: datetime
    key: str | None
    reason: str
    detail: str | None
