"""Holds, the votes on them, and the requests that they answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from gateway.resources.base import Resource
from gateway.resources.calls import Risk, Verdict
from schemas.commands import Decision as DecisionWord
from schemas.commands import RequestKind

HoldStatus = Literal["open", "resolved", "expired", "cancelled"]


class Vote(Resource):
    """One person's word on a hold."""

    decision_id: str
    decision: DecisionWord
    by: str
    person: str | None
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
    roles: list[str]
    reviewers: list[str]
    excluded: list[str]
    exclude_requester: bool
    claimed_by: str | None
    claimed_until: datetime | None
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
