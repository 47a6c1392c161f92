"""Holds, the votes on them, and the requests that they answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from gateway.resources.base import Resource
from gateway.resources.calls import Decision, Risk, Verdict
from schemas.commands import Decision as DecisionWord
from schemas.commands import RequestKind, Scope
from schemas.display.characters import Badge
from schemas.events.calls import RiskLevel
from schemas.events.holds import HoldCause, OnReject, OnTimeout

HoldStatus = Literal["open", "resolved", "expired", "cancelled"]


class Vote(Resource):
    """One person's word on a hold, on the digest that it names, and what it says to have seen.

    `roles` are those that it was given by; `dwell_ms` is how long this gateway had the view on show. `scope` and
    `remember` are what it asks to be remembered for: whoever approves after it agrees to exactly that, or to `once`.
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
    """A sensitive value that is not shown: where it would stand, and what the log has of it."""

    path: str
    handle: str
    commitment: str


class Difference(Resource):
    """What an edit made of one value, both as they are shown; null where there is none."""

    path: str
    before: str | None
    after: str | None


class LikeHold(Resource):
    """One of a group, with the digests that a decision names."""

    hold_id: str
    digest: str
    view_digest: str | None


class Requirement(Resource):
    """What some of several rules ask for, beside `quorum`: so many of those who have a role or are named."""

    rules: list[str]
    roles: list[str]
    reviewers: list[str]
    quorum: int


class Hold(Resource):
    """Something that waits, or waited, for a person; `request` is what the run was started for.

    `call_id` and `revision` are of the call that waits, `request_id` of a question. `escalate_at` is when more people
    are asked, `assignee` whom it was handed to, `response` the answer to a question.
    `assignee_known` is in the answer to a delegation only: false where principals are published, and the name is
    neither one of them nor an account of one.
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
    """What a person is shown of a hold: `text` is to be printed as it is, and `view_digest` names its bytes.

    `view_digest` is null where an earlier version opened the hold. `diff` is there where a person edited the call.
    `seen` are the votes, with what each says to have seen.
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


class HoldGroup(Resource):
    """Open holds that are alike; `holds` are the longest open, 1,000 at most, and `shape` that of their arguments."""

    agent: str | None
    tool: str | None
    kind: RequestKind
    cause: str
    rules: list[str]
    risk_level: RiskLevel | None
    shape: str
    must_read: bool
    count: int
    oldest_at: datetime
    newest_at: datetime
    holds: list[LikeHold]


class NextHold(Resource):
    """The hold that an edit opened, where its editor's word is not enough: who may decide it, as of a `Hold`.

    `counted` is how many of its votes it has already: 1 where the editor's word is the first.
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
    """The standing rule that an approval asks for; with `four_eyes` it waits until another person activates it."""

    rule_id: str
    four_eyes: bool


class Recorded(Resource):
    """The answer to a decision: `recorded` while the quorum is not met.

    `edited_digest` is that of what an edit put in place of the hold's arguments, as the log has it, else null.
    `next_hold` is there where an edit is not released and waits for others, `rule` where the decision has a standing
    rule made.
    """

    status: Literal["resolved", "recorded"]
    decision_id: str
    hold: Hold
    edited_digest: str | None
    next_hold: NextHold | None
    rule: AskedRule | None
    cursor: str


class BulkAnswer(Resource):
    """One answer for each decision of a bulk: as of a single decision, or a refusal."""

    items: list[dict[str, Any]]
    next_cursor: str | None
    cursor: str | None = None


class HumanRequest(Resource):
    """A question to a person; `response` is the answer once there is one, `feedback` what the person said besides."""

    request_id: str
    hold_id: str
    execution_id: str
    kind: RequestKind
    question: str
    options: list[Any]
    fields: list[Any]
    decision_type: str
    status: HoldStatus
    response: Any
    timed_out: bool
    by: str | None
    deadline_at: datetime | None
    decision: DecisionWord | None
    feedback: str | None
    cursor: str | None = None
