"""Records and statistics from the log: events, the audit trail, agents, reviewers, dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from gateway.resources.base import Resource
from schemas.trust import FactKind


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


class TrustFact(Resource):
    """One fact, its place in the log, and what it adds to `raising` and to `lowering`.

    `uncounted` says why a fact that could raise trust does not: the account is withdrawn, the person proposed the
    call, trust was begun anew since, or it is too old.
    """

    kind: FactKind
    at: datetime
    by: list[str]
    requester: str | None
    execution_id: str
    call_id: str
    partition: int
    offset: int
    raising: float
    lowering: float
    uncounted: Literal["withdrawn_account", "own_proposal", "before_it_began_anew", "too_old"] | None = None


class TrustClass(Resource):
    """The trust in an agent's calls of one class: the lower bound that a policy compares (docs/trust.md).

    `facts` is the number of facts; `evidence` lists them if one tool was asked for.
    """

    tool: str
    trust_class: str
    lower_bound: float
    raising: float
    lowering: float
    facts: int
    evidence: list[TrustFact]


class ExplainedTrust(Resource):
    """The trust in an agent at a moment, by classes of its calls.

    `lower_bound` is that of all classes together, to compare agents by; no call is released by it.
    """

    agent: str
    at: datetime
    lower_bound: float
    classes: list[TrustClass]
    cursor: str | None = None


class HeldCalls(Resource):
    """Calls that a rule holds, by what became of the hold; `saved` is the share that nobody was asked about."""

    held: int
    released: int
    sampled: int
    asked: int
    interruptions: int
    saved: float | None


class AgentHeldCalls(HeldCalls):
    """The same of one agent."""

    agent: str


class Share(Resource):
    """A share, None without cases, and the exact interval in which it is with this confidence."""

    share: float | None
    lower: float
    upper: float
    confidence: float


class SampledCalls(Share):
    """Of the sampled calls that people have decided: those that they did not approve unchanged."""

    decided: int
    contrary: int


class Regret(Share):
    """Of the calls that trust released: those that people took back or reported harm of."""

    released: int
    revoked: int
    harmful: int


class ApprovalMetrics(HeldCalls):
    """The effect of adaptive approval in a period."""

    since: datetime
    until: datetime
    sample: SampledCalls
    regret: Regret
    agents: list[AgentHeldCalls]
    cursor: str | None = None


class Reviewer(Resource):
    """A person who decided holds: the number of decisions of each kind, and how they were made.

    `average_wait_ms` is the time from the opening of a hold to the decision, `average_dwell_ms` the time that a hold
    was on the screen, as far as it was measured. Of `measured_approvals`, `quick_approvals` took less than 3 s.
    """

    reviewer: str
    approved: int
    edited: int
    rejected: int
    answered: int
    last_decided_at: datetime
    average_wait_ms: int
    average_dwell_ms: int | None
    measured_approvals: int
    quick_approvals: int
    quick_share: float | None


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
