"""/v1/requests: an agent's questions to a person."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.deciding import check_sees_hold
from gateway.operations.requests import find_request, plan_request, request_reply
from gateway.rest.documented import operation
from gateway.rest.parameters import AFTER, EXECUTION, WAIT
from gateway.rest.request_context import RequestContext, answer, context_of
from gateway.rest.waiting import wait_until
from projections.tables.holds import HoldRow

router = APIRouter(prefix="/v1/requests", tags=["requests"])
Context = Annotated[RequestContext, Depends(context_of)]


@router.post(
    "",
    status_code=201,
    operation_id="requestHumanInput",
    **operation({200: r.HumanRequest, 201: r.HumanRequest}, 404, 409, body=b.RequestHumanInput, writes=True),
)
async def ask(context: Context) -> Response:
    """Ask a person something. A request is a hold: to decide the hold is to answer the request."""
    given = await context.given()
    return await context.perform(lambda: plan_request(context.gate, context.claims, given, context.key))


@router.get(
    "/{request_id}",
    operation_id="getRequest",
    **operation({200: r.HumanRequest}, 404, 409, parameters=(EXECUTION, WAIT, AFTER)),
)
async def get_request(context: Context, request_id: str) -> Response:
    """Get a request as it is now; with `wait`, as soon as it is answered."""
    return answer(request_reply(context.gate, await read_request(context, request_id)))


async def read_request(context: RequestContext, request_id: str) -> HoldRow:
    """Return the row of a request that the caller may see, after the time that it asks to wait for the answer.

    Raises:
        Problem: 404 not_found; 403 not_authorised; 409 id_reused; 503 unavailable.
    """
    wait_s = context.seconds(WAIT)
    await context.settle_after()
    gate = context.gate
    subject = await find_request(gate, context.actor, request_id, context.query(EXECUTION.name))
    row: HoldRow = await gate.reader.read(subject)
    check_sees_hold(gate.live, row, context.actor)
    if not wait_s or row["status"] != "open":
        return row
    hold_id = row["hold_id"]

    def is_answered() -> bool:
        hold: HoldRow | None = gate.live.cache.holds.get(hold_id)
        return hold is not None and hold["status"] != "open"

    await wait_until(context, hold_id, is_answered, wait_s)
    found: HoldRow = gate.live.cache.holds.get(hold_id) or row
    # It may have been handed on meanwhile, or taken from whoever handed it to the caller.
    check_sees_hold(gate.live, found, context.actor)
    return found
