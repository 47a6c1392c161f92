"""/v1/executions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, get_args

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.identity.doors import check_reads, check_sees, reads_project
from gateway.operations.executions import plan_change, plan_start, subject_of
from gateway.problems import Problem, not_found
from gateway.rest.documented import change, operation, verb_route
from gateway.rest.door import Door, answer, door_of
from gateway.rest.history import Moment, event_page, read_execution, read_moment
from gateway.rest.parameters import AFTER, CURSOR, LIMIT, Parameter, Word
from gateway.words.executions import VERBS
from projections.folds.executions import execution_json
from projections.queries import history, lists
from projections.tables.executions import ExecutionRow
from schemas.refusals import Refusal

router = APIRouter(prefix="/v1/executions", tags=["executions"])
AtDoor = Annotated[Door, Depends(door_of)]
STATE = Word("state", "Only executions in this state.", words=get_args(r.ExecutionState))
AGENT = Parameter("agent", "Only those of this agent.")
AT = Parameter("at", "An RFC 3339 time or a version: the execution as it was then.")


@router.post(
    "",
    status_code=201,
    operation_id="startExecution",
    **operation({200: r.Execution, 201: r.Execution}, 409, body=b.StartExecution, writes=True),
)
async def start(door: AtDoor) -> Response:
    """Open an execution; the same body again answers 200 with the execution as it is now."""
    given = await door.given()
    return await door.perform(lambda: plan_start(door.gate, door.claims, given, door.key))


@router.get(
    "",
    operation_id="listExecutions",
    **operation({200: r.Page[r.Execution]}, parameters=(STATE, AGENT, CURSOR, LIMIT, AFTER)),
)
async def list_executions(door: AtDoor) -> Response:
    """List executions, newest first; an agent's token sees its own."""
    actor = door.actor
    agent = door.query("agent")
    if not reads_project(actor):
        if actor.agent is None:
            check_reads(actor)
        if agent not in (None, actor.agent):
            raise Problem(Refusal.NOT_AUTHORISED, "this token may only list its own agent's executions")
        agent = actor.agent
    limit = door.limit()
    state, cursor = door.one_of(STATE), door.query("cursor")
    return await door.paged(
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
async def get_execution(door: AtDoor, execution_id: str) -> Response:
    """Get an execution as it is now, or as it was at a time or version."""
    await door.settle_after()
    row: ExecutionRow = await door.gate.reader.read(subject_of(door.actor, execution_id))
    check_sees(door.actor, row["agent"])
    at = door.query("at")
    if at is None:
        return answer(door.gate.json(execution_json(row)))
    when: Moment = read_moment(at)
    actor = door.actor
    state = await read_execution(
        door,
        execution_id,
        lambda moment: history.state_at(
            moment, actor.tenant, actor.project, execution_id, at_ms=when.at_ms, version=when.version
        ),
    )
    if state.execution is None:
        raise not_found("execution at that moment")
    return answer(door.gate.json(execution_json(state.execution)))


@router.get(
    "/{execution_id}/events",
    operation_id="listExecutionEvents",
    **operation({200: r.Page[r.Event]}, 404, parameters=(CURSOR, LIMIT, AFTER)),
)
async def list_events(door: AtDoor, execution_id: str) -> Response:
    """List the events of an execution, in order."""
    await door.settle_after()
    row: ExecutionRow = await door.gate.reader.read(subject_of(door.actor, execution_id))
    check_sees(door.actor, row["agent"])
    return await event_page(door, execution_id)


def _change(verb: str) -> Callable[[Door, str], Awaitable[Response]]:
    async def change_execution(door: AtDoor, execution_id: str) -> Response:
        given = await door.given()
        return await door.perform(
            lambda: plan_change(door.gate, door.claims, execution_id, verb, given, door.key)
        )

    return change_execution


for _verb in VERBS:
    verb_route(router, "/{execution_id}", _verb, change(r.Execution, _verb.body))(_change(_verb.name))
