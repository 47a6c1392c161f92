"""/v1/executions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, get_args

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.actions.executions import VERBS
from gateway.identity.authentication import check_reads, check_sees, reads_project
from gateway.operations.executions import plan_change, plan_start, subject_of
from gateway.problems import Problem, not_found
from gateway.rest.documented import change, operation, verb_route
from gateway.rest.history import fold_execution, log_page, read_until
from gateway.rest.parameters import AFTER, CURSOR, LIMIT, Choice, Parameter
from gateway.rest.request_context import RequestContext, answer, context_of
from projections.folds.executions import execution_json
from projections.queries import history, lists
from projections.tables.executions import ExecutionRow
from schemas.refusals import Refusal

router = APIRouter(prefix="/v1/executions", tags=["executions"])
Context = Annotated[RequestContext, Depends(context_of)]
STATE = Choice("state", "Only executions in this state.", choices=get_args(r.ExecutionState))
AGENT = Parameter("agent", "Only those of this agent.")
AT = Parameter(
    "at",
    "An RFC 3339 time, a version, or an offset of the log (`@123`, `PARTITION@123`): the execution as it was then.",
)


@router.post(
    "",
    status_code=201,
    operation_id="startExecution",
    **operation({200: r.Execution, 201: r.Execution}, 409, body=b.StartExecution, writes=True),
)
async def start(context: Context) -> Response:
    """Open an execution; the same body again answers 200 with the execution as it is now."""
    given = await context.given()
    return await context.perform(lambda: plan_start(context.gate, context.claims, given, context.key))


@router.get(
    "",
    operation_id="listExecutions",
    **operation({200: r.Page[r.Execution]}, parameters=(STATE, AGENT, CURSOR, LIMIT, AFTER)),
)
async def list_executions(context: Context) -> Response:
    """List executions, newest first; an agent's token sees its own."""
    actor = context.actor
    agent = context.query("agent")
    if not reads_project(actor):
        if actor.agent is None:
            check_reads(actor)
        if agent not in (None, actor.agent):
            raise Problem(Refusal.NOT_AUTHORISED, "this token may only list its own agent's executions")
        agent = actor.agent
    limit = context.limit()
    state, cursor = context.one_of(STATE), context.cursor()
    return await context.paged(
        lambda moment: lists.executions(
            moment, actor.tenant, actor.project, state=state, agent=agent, cursor=cursor, limit=limit
        ),
        execution_json,
    )


@router.get(
    "/{execution_id}",
    operation_id="getExecution",
    **operation({200: r.Execution}, 404, parameters=(AT, AFTER)),
)
async def get_execution(context: Context, execution_id: str) -> Response:
    """Get an execution as it is now, or as it was at a time, a version or an offset of the log."""
    await context.settle_after()
    async with context.views_wait.answer():
        row: ExecutionRow = await context.gate.reader.read(subject_of(context.actor, execution_id))
    check_sees(context.actor, row["agent"])
    at = context.query("at")
    if at is None:
        return answer(context.gate.json(execution_json(row)))
    state = await fold_execution(context, execution_id, read_until(at, row["log_partition"]))
    if state.execution is None:
        raise not_found("execution at that moment")
    return answer(context.gate.json(execution_json(state.execution)))


@router.get(
    "/{execution_id}/events",
    operation_id="listExecutionEvents",
    **operation({200: r.Page[r.Event]}, 404, parameters=(CURSOR, LIMIT, AFTER)),
)
async def list_events(context: Context, execution_id: str) -> Response:
    """List the events of an execution, in order."""
    await context.settle_after()
    async with context.views_wait.answer():
        row: ExecutionRow = await context.gate.reader.read(subject_of(context.actor, execution_id))
    check_sees(context.actor, row["agent"])
    return await log_page(context, execution_id, history.events, history.event_json)


def _change(verb: str) -> Callable[[RequestContext, str], Awaitable[Response]]:
    async def change_execution(context: Context, execution_id: str) -> Response:
        given = await context.given()
        return await context.perform(
            lambda: plan_change(context.gate, context.claims, execution_id, verb, given, context.key)
        )

    return change_execution


for _verb in VERBS:
    verb_route(router, "/{execution_id}", _verb, change(r.Execution, _verb.body))(_change(_verb.name))
