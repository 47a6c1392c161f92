"""What clients get, as models: the words of the published documents, and what tests check answers against.

Answers are written straight from the rows (`projections.folds`); these models say what they look like. Fields
may be added, so clients ignore those that they do not know.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from schemas.commands import Decision as DecisionWord
from schemas.commands import RequestKind
from schemas.events.calls import Effect, RiskLevel
from schemas.refusals import Refusal

CallStatus = Literal[
    "proposed",
    "held",
    "released",
    "denied",
    "cancelled",
    "expired",
    "revoked",
    "consumed",
    "succeeded",
    "failed",
    "outcome_unknown",
]
ExecutionState = Literal[
    "running",
    "paused",
    "waiting_clarification",
    "waiting_correction",
    "waiting_approval",
    "resumed",
    "completed",
    "failed",
    "cancelled",
]
HoldStatus = Literal["open", "resolved", "expired", "cancelled"]
T = TypeVar("T")


class Resource(BaseModel):
    """An answer; more fields may be added."""

    model_config = ConfigDict(extra="allow")


class FieldError(Resource):
    """One thing that is wrong with a body, and where."""

    path: str
    code: str
    message: str


class Problem(Resource):
    """A refusal (RFC 9457)."""

    type: str
    title: str
    status: int
    code: Refusal
    detail: str
    errors: list[FieldError] | None = None
    winning_decision_id: str | None = None
    retry_after: int | None = None


class Risk(Resource):
    """How much a call could do."""

    score: float
    level: RiskLevel
    parts: list[str]
    required: float


class Verdict(Resource):
    """What the policy said of a call."""

    effect: Effect
    rules: list[str]
    risk: Risk | None
    trust: Any
    policy_version: str | None


class Decision(Resource):
    """A person's word."""

    decision_id: str
    decision: DecisionWord
    by: str
    at: datetime
    feedback: str | None


class Grant(Resource):
    """The leave to run exactly one digest, once.

    `token` is the signed grant, for a tool server: only while the call is released, only for who may consume it,
    and not in lists.
    """

    digest: str
    expires_at: datetime
    token: str | None
    decision_id: str


class JsonWebKey(BaseModel):
    """An Ed25519 public key (RFC 8037)."""

    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    x: str
    kid: str
    use: Literal["sig"]
    alg: Literal["EdDSA"]


class JsonWebKeySet(BaseModel):
    """The keys that sign grants (RFC 7517); those of the past stay, so that their grants can be verified."""

    keys: list[JsonWebKey]


class ToolCall(Resource):
    """A tool call as it stands."""

    tenant: str
    execution_id: str
    call_id: str
    revision: int
    agent: str
    tool: str
    tool_version: str
    arguments: dict[str, Any]
    digest: str
    approved_arguments: dict[str, Any] | None
    status: CallStatus
    verdict: Verdict | None
    hold_id: str | None
    deadline_at: datetime | None
    decision: Decision | None
    grant: Grant | None
    cursor: str | None = None


class Execution(Resource):
    """One run of an agent."""

    tenant: str
    project: str
    execution_id: str
    state: ExecutionState
    agent: str
    user: str
    workspace: str
    request: str
    version: int
    calls: int
    open_holds: int
    started_at: datetime
    ended_at: datetime | None
    cursor: str | None = None


class Vote(Resource):
    """One person's word on a hold."""

    decision_id: str
    decision: DecisionWord
    by: str
    at: datetime


class Hold(Resource):
    """Something that waits, or waited, for a person."""

    hold_id: str
    execution_id: str
    call_id: str | None
    request_id: str | None
    kind: RequestKind
    status: HoldStatus
    agent: str | None
    tool: str | None
    arguments: dict[str, Any] | None
    digest: str
    question: str
    options: list[Any]
    input_schema: dict[str, Any] | None
    risk: Risk | None
    trust: Any
    verdict: Verdict | None
    quorum: int
    votes: list[Vote]
    deadline_at: datetime | None
    on_timeout: str
    cursor: str | None = None


class Recorded(Resource):
    """The answer to a decision: `recorded` while the quorum is not met."""

    status: Literal["resolved", "recorded"]
    decision_id: str
    hold: Hold
    cursor: str


class BulkAnswer(Resource):
    """One answer for each decision of a bulk: as of a single decision, or a refusal."""

    items: list[dict[str, Any]]


class HumanRequest(Resource):
    """A question to a person; `response` is the answer once there is one."""

    request_id: str
    hold_id: str
    execution_id: str
    kind: RequestKind
    question: str
    status: HoldStatus
    response: Any
    cursor: str | None = None


class Published(Resource):
    """A published version; `pending` are the partitions that have not adopted it yet."""

    name: str
    version: int
    adopted: bool
    pending: list[int]
    cursor: str


class Tool(Resource):
    """A published tool."""

    name: str
    version: int
    tool_version: str
    published_by: str
    published_at: datetime


class PolicyVersion(Resource):
    """A published version of a policy."""

    name: str
    version: int
    document: dict[str, Any]
    published_by: str
    published_at: datetime


class Event(Resource):
    """A recorded fact."""

    event_id: str
    at: datetime
    version: int
    partition: int
    offset: int
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
    result: Any


class AgentTool(Resource):
    """What an agent did with a tool."""

    tool: str
    proposed: int


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


class Component(Resource):
    """A part of the installation and how it was at a moment.

    `pid` is null where it is no process of ours. It and `address` are null for all but an admin of the
    installation's own tenant.
    """

    name: str
    pid: int | None
    state: str
    address: str | None
    at: datetime


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


class Health(Resource):
    """Whether the process lives, or serves."""

    status: str


class RegistryError(Resource):
    """An error as a schema registry says it."""

    error_code: int
    message: str


class Page(Resource, Generic[T]):
    """Part of a list."""

    items: list[T]
    next_cursor: str | None
    cursor: str | None = None
