"""The requests: a SQL view on the holds."""

from typing import Annotated, TypedDict

from projections.tables.columns import Offer
from projections.tables.common import (
    Agent,
    Asks,
    ClosedAt,
    DeadlineAt,
    DecidedBy,
    DecisionType,
    ExecutionId,
    Fields,
    HoldId,
    Kind,
    OpenedAt,
    Options,
    Project,
    Question,
    RequestId,
    Response,
    Tenant,
    TimedOut,
)


class RequestRow(TypedDict):
    """The holds that are questions of agents; made from holds."""

    tenant: Tenant
    project: Project
    request_id: RequestId | None
    hold_id: HoldId
    execution_id: ExecutionId
    agent: Agent | None
    kind: Kind
    question: Question
    options: Options
    fields: Fields
    decision_type: DecisionType
    asks: Asks | None
    status: Annotated[str, "open, resolved, expired or cancelled."]
    response: Response | None
    decided_by: DecidedBy | None
    timed_out: TimedOut
    opened_at_ms: OpenedAt
    deadline_at_ms: DeadlineAt | None
    closed_at_ms: ClosedAt | None
    on_timeout: Annotated[str, "What happens at the deadline."]


REQUESTS = Offer("requests", RequestRow)
