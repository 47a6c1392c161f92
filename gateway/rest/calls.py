"""/v1/executions/{execution_id}/tool-calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.actions.calls import VERBS
from gateway.asking.undecided import row_or_proposal
from gateway.identity.authentication import check_sees
from gateway.live.reader import Subject
from gateway.operations import executions
from gateway.operations.calls import (
    PENDING,
    call_reply,
    plan_change,
    plan_propose,
    subject_of,
    undecided_reply,
)
from gateway.operations.plan import planned
from gateway.problems import Problem
from gateway.rest.documented import change, operation, verb_route
from gateway.rest.history import read_execution
from gateway.rest.parameters import AFTER, CURSOR, WAIT, WAIT_OF_PROPOSAL
from gateway.rest.request_context import RequestContext, answer, context_of
from gateway.rest.waiting import wait_until
from gateway.shares.work import owner_of
from projections.folds.calls import call_json
from projections.folds.rows import moment
from projections.queries import lists
from projections.queries.paging import BadCursor
from projections.queries.refused_proposals import refused_proposal
from projections.tables.calls import CallRow
from projections.tables.executions import ExecutionRow
from schemas.commands import ProposeToolCall
from schemas.refusals import Refusal

router = APIRouter(prefix="/v1/executions/{execution_id}/tool-calls", tags=["tool calls"])
Context = Annotated[RequestContext, Depends(context_of)]


@router.post(
    "",
    operation_id="proposeToolCall",
    **operation(
        {200: r.ToolCall, 202: r.ToolCall},
        404,
        409,
        body=b.ProposeToolCall,
        parameters=(WAIT_OF_PROPOSAL,),
        writes=True,
    ),
)
async def propose(context: Context, execution_id: str) -> Response:
    """Propose a call: 200 when it is decided, 202 while it waits for a verdict or a person.

    The verdict takes milliseconds, and the request always waits for it, up to 5 s. `wait` is the time to wait for the
    person: without it a held call is answered after 5 s, with `wait=0` as soon as it is held.
    """
    given = await context.given()
    wait_s = context.seconds(WAIT_OF_PROPOSAL)
    gate = context.gate
    making = planned(gate, lambda: plan_propose(gate, context.claims, execution_id, given, context.key))
    plan = await context.priced(making)
    response = await context.perform(lambda: plan)
    subject = plan.subject
    if response.status_code != 202 or subject is None or wait_s == 0:
        return response
    try:
        row = await _decided(context, subject, wait_s)
    except Problem as problem:
        if problem.code == Refusal.QUOTA:
            # It has been proposed: told as it stands, it can be asked for when fewer requests wait.
            return response
        raise
    if row is not None and row["status"] == "consumed" and plan.ask.anew:
        # The decider says whose permission to run that is, and whether it is still valid.
        return await context.perform(lambda: plan)
    return response if row is None else answer(call_reply(gate, row, context.actor))


@router.get(
    "",
    operation_id="listToolCalls",
    **operation({200: r.Page[r.ToolCall]}, 404, parameters=(CURSOR, AFTER)),
)
async def list_calls(context: Context, execution_id: str) -> Response:
    """List all calls of an execution in the order in which they were proposed, without the tokens of their grants.

    The list is one page, unless the calls are so large that the page is cut.
    """
    await context.settle_after()
    actor = context.actor
    async with context.views_wait.answer():
        execution: ExecutionRow = await context.gate.reader.read(executions.subject_of(actor, execution_id))
    check_sees(actor, execution["agent"])
    cursor = context.cursor()
    async with context.gateway.work.page(owner_of(context.actor), context.views_wait):
        try:
            page = await read_execution(
                context,
                execution_id,
                lambda now: lists.calls(now, actor.tenant, actor.project, execution_id, cursor),
            )
        except BadCursor as error:
            raise Problem(Refusal.INVALID, str(error)) from error
        return await context.page(page, call_json)


@router.get(
    "/{call_id}",
    operation_id="getToolCall",
    **operation({200: r.ToolCall, 202: r.ToolCall}, 404, parameters=(WAIT, AFTER)),
)
async def get_call(context: Context, execution_id: str, call_id: str) -> Response:
    """Get a call as it is now; with `wait`, as soon as it is decided."""
    wait_s = context.seconds(WAIT)
    await context.settle_after()
    subject = subject_of(context.actor, execution_id, call_id)
    row: CallRow | None = context.gate.reader.at_hand(subject)
    if row is None:
        execution: ExecutionRow = await context.gate.reader.read(
            executions.subject_of(context.actor, execution_id)
        )
        check_sees(context.actor, execution["agent"])
        try:
            found = await row_or_proposal(context.gate.reader, context.gate.undecided, subject)
        except Problem as problem:
            if problem.code is not Refusal.NOT_FOUND:
                raise
            raise await _never_made(context, execution_id, call_id, problem) from problem
        if isinstance(found, ProposeToolCall):
            row = await _decided(context, subject, wait_s)
            if row is None:
                return answer(
                    undecided_reply(context.gate, context.actor, execution["agent"], execution_id, found)
                )
        else:
            row = found
    check_sees(context.actor, row["agent"])
    if wait_s and row["status"] in PENDING:
        row = await _decided(context, subject, wait_s) or row
    return answer(call_reply(context.gate, row, context.actor))


async def _never_made(context: RequestContext, execution_id: str, call_id: str, missing: Problem) -> Problem:
    """Return the 404 of a call that does not exist, with the refusal of its proposal if it had one.

    A proposal that was answered 202 without a verdict can be refused later, as when its run has ended meanwhile:
    whoever asks for the call then is not told it by anything else.
    """
    place = (context.actor.tenant, context.actor.project, execution_id, call_id)
    refused, _ = await context.ask_views(lambda now: refused_proposal(now, *place))
    if refused is None:
        return missing
    told = {"code": refused.code, "detail": refused.detail, "at": moment(refused.at_ms)}
    detail = f"{missing.detail}: its proposal was refused ({refused.code}: {refused.detail})"
    return Problem(missing.code, detail, refused=told)


def _change(verb: str) -> Callable[[RequestContext, str, str], Awaitable[Response]]:
    async def change_call(context: Context, execution_id: str, call_id: str) -> Response:
        given = await context.given()
        return await context.perform(
            lambda: plan_change(context.gate, context.claims, execution_id, call_id, verb, given, context.key)
        )

    return change_call


for _verb in VERBS:
    verb_route(router, "/{call_id}", _verb, change(r.ToolCall, _verb.body))(_change(_verb.name))


async def _decided(context: RequestContext, subject: Subject, wait_s: float) -> CallRow | None:
    """Return the call once it is decided, or as it is after `wait_s`; None if there is no such call."""
    reader = context.gate.reader

    def is_decided() -> bool:
        row: CallRow | None = reader.at_hand(subject)
        return row is not None and row["status"] not in PENDING

    await wait_until(context, (subject.key, subject.id), is_decided, wait_s)
    return reader.at_hand(subject)
