"""The actions on a proposed tool call: each verb with its body, route and message.

`gateway.operations.calls` says how each action is planned.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from gateway.actions.verb import Action, ClientMessage, Ref
from gateway.bodies import INTEGRAL, Body, ClientId, Digest, GrantId, Text
from schemas import commands as k
from schemas.command_rules import limit_of
from schemas.commands import Outcome
from schemas.limits import COUNT_MAX


class ConsumeGrant(Body):
    """Consume a release, once. `attempt_id` is random per process and never derived from the call.

    With `grant_id`, only that release is consumed, and never a later one of the same call.
    """

    digest: Digest
    attempt_id: ClientId | None = None
    grant_id: GrantId | None = None


class ReportResult(Body):
    """Report how a consumed call ended."""

    attempt_id: ClientId
    outcome: Outcome
    output: Any = Field(
        default=None, description="The output of the tool: any JSON. Stored only if the call succeeded."
    )
    error: Text | None = Field(default=None, description="Stored only if the call did not succeed.")
    duration_ms: Annotated[int, Field(ge=0, le=COUNT_MAX), INTEGRAL] | None = None


class RenewLease(Body):
    """Report that an attempt is still running its call."""

    attempt_id: ClientId


class RevokeGrant(Body):
    """Revoke a release that has not been consumed yet."""

    reason: Text = ""


class ReportImpact(Body):
    """Report that a call which ran, or may have run, did harm."""

    reason: Annotated[str, Field(min_length=1, max_length=limit_of(k.ReportImpact, "reason"))]


class Consume(ClientMessage):
    """Consume a release, once, just before the tool runs: only a reply of 200 permits the attempt to run it."""

    type: Literal["consume"]
    ref: Ref
    execution_id: ClientId
    call_id: ClientId
    body: ConsumeGrant


class Result(ClientMessage):
    """Report how a consumed call ended."""

    type: Literal["result"]
    ref: Ref
    execution_id: ClientId
    call_id: ClientId
    body: ReportResult


class Heartbeat(ClientMessage):
    """Report that an attempt is still running its call, when half of its lease has passed."""

    type: Literal["heartbeat"]
    ref: Ref
    execution_id: ClientId
    call_id: ClientId
    body: RenewLease


# In the order of their routes.
VERBS: tuple[Action[Any], ...] = (
    Action(
        name="consume",
        operation="consumeGrant",
        says="Consume a release, once: 200 permits the attempt to run the call, also in a repeat, and only while "
        "this attempt holds the call.",
        body=ConsumeGrant,
        message=Consume,
    ),
    Action(
        name="result",
        operation="reportResult",
        says="Report how a consumed call ended.",
        body=ReportResult,
        message=Result,
    ),
    Action(
        name="heartbeat",
        operation="renewLease",
        says="Report that an attempt is still running its call, once half of its lease has passed; earlier reports "
        "change nothing.",
        body=RenewLease,
        message=Heartbeat,
    ),
    Action(
        name="revoke",
        operation="revokeGrant",
        says="Revoke a release that has not been consumed yet.",
        body=RevokeGrant,
    ),
    Action(
        name="report-impact",
        operation="reportImpact",
        says="Report that a call which ran, or may have run, did harm. It can be reported after the end of its "
        "execution, as long as deciders remember that. A report is final; a person's second one of a call changes "
        "nothing, and its reason is not recorded.",
        body=ReportImpact,
    ),
)
# In the order in which an agent uses them.
MESSAGES: tuple[type[BaseModel], ...] = (Consume, Heartbeat, Result)
