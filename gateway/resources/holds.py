"""Holds, the votes on them, and the requests of agents."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from gateway.resources.base import Resource
from gateway.resources.calls import Decision, Risk, Verdict
from gateway.resources.probes import AnsweredProbe
from schemas.commands import Decision as DecisionWord
from schemas.commands import RequestKind, RiskOfRequest, Scope
from schemas.display.characters import Badge
from schemas.events.calls import RiskLevel
from schemas.events.holds import HoldCause, OnReject, OnTimeout

HoldStatus = Literal["open", "resolved", "expired", "cancelled"]


class Vote(Resource):
    """One person's vote on a hold, on the digest that it names, and the view that the person states to have seen.

    `roles` are the roles by which the person voted; `dwell_ms` is how long this gateway had shown the view. `scope`
    and `remember` are what the vote requests to be remembered: a later approval agrees to exactly that, or to `once`.
    """

    decision_id: str
    decision: DecisionWord
    by: str
    person: str | None
    roles: list[str]
    at: datetime
    digest: str
    feedback: str
    view_digest: str | None
    dwell_ms: int | None
    scope: Scope
    remember: dict[str, Any] | None


class Redaction(Resource):
    """A sensitive value that is not shown: its path, and its handle and commitment in the log."""

    path: str
    handle: str
    commitment: str


class Difference(Resource):
    """An edit's change of one value, both values as they are shown; null if there is none."""

    path: str
    before: str | None
    after: str | None


class LikeHold(Resource):
    """A hold of a group, with the digests that a decision names."""

    hold_id: str
    digest: str
    view_digest: str | None


class Requirement(Resource):
    """A requirement of one or more rules, besides `quorum`: this many approvals by the roles or the reviewers."""

    rules: list[str]
    roles: list[str]
    reviewers: list[str]
    quorum: int


class Asks(Resource):
    """What the answer to a question can be, beside its options, and what a permission is about."""

    allow_custom: bool
    multiple: bool
    tool: str
    action: str
    risk: RiskOfRequest
    remember: bool


class Hold(Resource):
    """A call or request that waits, or waited, for a person; `request` is what its agent was asked for.

    `call_id` and `revision` are those of the waiting call, `request_id` that of a question. At `escalate_at` the hold
    is escalated to more people, at `remind_at` people are reminded of it, once; `assignee` is the subject it was
    delegated to, `response` the answer to a question.
    `assignee_known` is only in the answer to a delegation: false if principals are published, and the name is neither
    one of them nor an account of one.
    """

    tenant: str
    project: str
    hold_id: str
    execution_id: str
    request: str | None
    call_id: str | None
    request_id: str | None
    revision: int
    kind: RequestKind
    cause: HoldCause
    status: HoldStatus
    agent: str | None
    tool: str | None
    tool_version: str | None
    arguments: dict[str, Any] | None
    digest: str
    reason: str | None
    question: str
    options: list[Any]
    input_schema: dict[str, Any] | None
    fields: list[Any]
    decision_type: str
    asks: Asks | None
    risk: Risk | None
    trust: Any
    verdict: Verdict | None
    requester: str
    roles: list[str]
    reviewers: list[str]
    excluded: list[str]
    requirements: list[Requirement]
    exclude_requester: bool
    quorum: int
    votes: list[Vote]
    claimed_by: str | None
    claimed_until: datetime | None
    assignee: str | None
    escalated: bool
    opened_at: datetime
    deadline_at: datetime | None
    escalate_at: datetime | None
    remind_at: datetime | None
    on_timeout: OnTimeout
    on_reject: OnReject
    default: Any
    decision: Decision | None
    response: Any
    timed_out: bool
    updated_at: datetime
    closed_at: datetime | None
    view_digest: str | None
    view_version: int | None
    must_read: bool
    badges: list[Badge]
    assignee_known: bool | None = None
    cursor: str | None = None


class HoldView(Resource):
    """The view of a hold: `text` must be shown unchanged, and `view_digest` is the digest of its bytes.

    `view_digest` is null if an earlier version opened the hold. `diff` is present if a person edited the call.
    `seen` are the votes, each with the view that it states to have seen.
    """

    hold_id: str
    version: int
    view_digest: str | None
    text: str
    badges: list[Badge]
    redactions: list[Redaction]
    must_read: bool
    truncated: bool
    diff: list[Difference] | None
    seen: list[Vote]
    cursor: str | None = None


class GroupHistory(Resource):
    """What the past says of the values of each call of a group; see the `CallHistory` of a verdict.

    If `parts` is not empty, `is_whole` is false, or values are tainted while `is_known` is false, no bulk decision
    accepts the holds.
    """

    parts: list[str]
    novel: list[str]
    tainted: list[str]
    is_whole: bool
    is_known: bool


class HoldGroup(Resource):
    """Open holds that are alike; `holds` are the longest open, at most 1,000; `shape` is that of their arguments."""

    agent: str | None
    tool: str | None
    kind: RequestKind
    cause: str
    rules: list[str]
    risk_level: RiskLevel | None
    shape: str
    must_read: bool
    history: GroupHistory
    count: int
    oldest_at: datetime
    newest_at: datetime
    holds: list[LikeHold]


class NextHold(Resource):
    """The hold that an edit opened because the editor's decision is not enough; who may decide it, as in a `Hold`.

    `counted` is the number of votes that it already has: 1 if the editor's decision counts as the first.
    """

    hold_id: str
    digest: str
    roles: list[str]
    reviewers: list[str]
    excluded: list[str]
    exclude_requester: bool
    quorum: int
    requirements: list[Requirement]
    counted: int


class AskedRule(Resource):
    """The standing rule that an approval requests; with `four_eyes` it waits until another person activates it."""

    rule_id: str
    four_eyes: bool


class Recorded(Resource):
    """The answer to a decision: `recorded` while the quorum is not met.

    `edited_digest` is the digest of the arguments that an edit put in place of the hold's, as in the log, else null.
    `next_hold` is present if an edit is not released and waits for others, `rule` if the decision requests a standing
    rule, `probe` if it ended a call that an operator had planted.
    """

    status: Literal["resolved", "recorded"]
    decision_id: str
    hold: Hold
    edited_digest: str | None
    next_hold: NextHold | None
    rule: AskedRule | None
    probe: AnsweredProbe | None
    cursor: str


class BulkAnswer(Resource):
    """One answer for each decision of the bulk: that of a single decision, or a refusal."""

    items: list[dict[str, Any]]
    next_cursor: str | None
    cursor: str | None = None


class HumanRequest(Resource):
    """A question to a person; `response` is the answer once there is one, `feedback` the person's comment.

    `input_schema` is the JSON Schema of an answer.
    """

    request_id: str
    hold_id: str
    execution_id: str
    kind: RequestKind
    question: str
    options: list[Any]
    fields: list[Any]
    decision_type: str
    asks: Asks | None
    input_schema: dict[str, Any] | None
    status: HoldStatus
    response: Any
    timed_out: bool
    by: str | None
    deadline_at: datetime | None
    decision: DecisionWord | None
    feedback: str | None
    cursor: str | None = None
