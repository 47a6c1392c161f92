"""/v1/holds/groups and /v1/holds/{id}/view: holds as a person must see them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway.deciding import check_sees_hold, sees_hold
from gateway.identity.doors import check_reads
from gateway.operations import executions, holds
from gateway.operations.groups import groups_of
from gateway.operations.views import AT_DECISION, view_reply
from gateway.resources import Page
from gateway.resources.holds import HoldGroup, HoldView
from gateway.rest.documented import operation
from gateway.rest.door import Door, answer, door_of
from gateway.rest.head_method import has_body
from gateway.rest.parameters import AFTER, Parameter, Word
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow

router = APIRouter(prefix="/v1/holds", tags=["holds"])
AtDoor = Annotated[Door, Depends(door_of)]
AT = Word(
    "at",
    f"`{AT_DECISION}`: the view that the decisions were made on, with the decisions. Leave it out if there is "
    "none yet.",
    words=(AT_DECISION,),
)
AGENT = Parameter("agent", "Only those of this agent.")


@router.get(
    "/groups",
    operation_id="groupHolds",
    **operation({200: Page[HoldGroup]}, parameters=(AGENT, AFTER)),
)
async def group_holds(door: AtDoor) -> Response:
    """Group the open holds that are alike: same agent, tool, rules, risk and shape of arguments."""
    if door.actor.agent is not None:
        check_reads(door.actor)
    await door.settle_after()
    actor, agent = door.actor, door.query("agent")
    rows = door.gate.live.cache.open_holds(actor.tenant, actor.project)
    live = door.gate.live

    def grouped() -> list[dict[str, Any]]:
        wanted = [row for row in rows if agent in (None, row["agent"]) and sees_hold(live, row, actor)]
        return groups_of(sorted(wanted, key=lambda row: (row["opened_at_ms"], row["hold_id"])))

    return await door.listed(await door.done(grouped), dict)


@router.get(
    "/{hold_id}/view",
    operation_id="viewHold",
    **operation({200: HoldView}, 404, parameters=(AT, AFTER)),
)
async def view_hold(door: AtDoor, hold_id: str) -> Response:
    """Get the view of a hold: one fixed text, to be shown unchanged."""
    at = door.one_of(AT)
    await door.settle_after()
    reader = door.gate.reader
    row: HoldRow = await reader.read(holds.subject_of(door.actor, hold_id))
    check_sees_hold(door.gate.live, row, door.actor)
    execution: ExecutionRow = await reader.read(executions.subject_of(door.actor, row["execution_id"]))
    reply = await view_reply(door.gate, door.actor, row, execution, at)
    if door.actor.agent is None and has_body(door.request.scope):
        door.gate.looks.note(door.actor, hold_id)
    return answer(reply)
