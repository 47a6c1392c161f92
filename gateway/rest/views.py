"""/v1/holds/groups and /v1/holds/{id}/view: holds as a person must see them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway.deciding import check_sees_hold, sees_hold
from gateway.identity.authentication import check_reads
from gateway.operations import executions, holds
from gateway.operations.groups import groups_of
from gateway.operations.views import AT_DECISION, view_reply
from gateway.resources import Page
from gateway.resources.holds import HoldGroup, HoldView
from gateway.rest.documented import operation
from gateway.rest.head_method import has_body
from gateway.rest.parameters import AFTER, Choice, Parameter
from gateway.rest.request_context import RequestContext, answer, context_of
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow

router = APIRouter(prefix="/v1/holds", tags=["holds"])
Context = Annotated[RequestContext, Depends(context_of)]
AT = Choice(
    "at",
    f"`{AT_DECISION}`: the view that the decisions were made on, with the decisions. Leave it out if there is "
    "none yet.",
    choices=(AT_DECISION,),
)
AGENT = Parameter("agent", "Only those of this agent.")


@router.get(
    "/groups",
    operation_id="groupHolds",
    **operation({200: Page[HoldGroup]}, parameters=(AGENT, AFTER)),
)
async def group_holds(context: Context) -> Response:
    """Group the open holds that are alike: same agent, tool, rules, risk, new values and shape."""
    if context.actor.agent is not None:
        check_reads(context.actor)
    await context.settle_after()
    actor, agent = context.actor, context.query("agent")
    rows = context.gate.live.cache.open_holds(actor.tenant, actor.project)
    live = context.gate.live

    def grouped() -> list[dict[str, Any]]:
        wanted = [row for row in rows if agent in (None, row["agent"]) and sees_hold(live, row, actor)]
        return groups_of(sorted(wanted, key=lambda row: (row["opened_at_ms"], row["hold_id"])))

    return await context.listed(await context.done(grouped), dict)


@router.get(
    "/{hold_id}/view",
    operation_id="viewHold",
    **operation({200: HoldView}, 404, parameters=(AT, AFTER)),
)
async def view_hold(context: Context, hold_id: str) -> Response:
    """Get the view of a hold: one fixed text, to be shown unchanged."""
    at = context.one_of(AT)
    await context.settle_after()
    reader = context.gate.reader
    row: HoldRow = await reader.read(holds.subject_of(context.actor, hold_id))
    check_sees_hold(context.gate.live, row, context.actor)
    execution: ExecutionRow = await reader.read(executions.subject_of(context.actor, row["execution_id"]))
    reply = await view_reply(context.gate, context.actor, row, execution, at)
    if context.actor.agent is None and has_body(context.request.scope):
        context.gate.view_times.note(context.actor, hold_id)
    return answer(reply)
