"""/v1/executions/{id}/messages and turns: conversations, and the workers that answer in them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import resources as r
from gateway.actions.turns import VERBS, ClaimTurn, SendMessage
from gateway.bodies import read_body
from gateway.identity.authentication import check_acts, check_sees
from gateway.live.turns import Agent, TurnKey
from gateway.operations.conversations import (
    PASSED_BY,
    check_unspent,
    plan_claim,
    plan_message,
    plan_turn_change,
    subject_of,
)
from gateway.operations.executions import subject_of as execution_of
from gateway.operations.plan import Reply
from gateway.problems import Problem
from gateway.rest.documented import change, operation, verb_route
from gateway.rest.history import log_page
from gateway.rest.parameters import AFTER, CURSOR, LIMIT, ORDER, WAIT
from gateway.rest.request_context import RequestContext, answer, context_of
from gateway.rest.waiting import wait_until
from projections.folds.turns import message_json, turn_json
from projections.queries import resources
from projections.tables.conversations import TurnRow
from projections.tables.executions import ExecutionRow

router = APIRouter(prefix="/v1", tags=["conversations"])
Context = Annotated[RequestContext, Depends(context_of)]


@router.post(
    "/executions/{execution_id}/messages",
    status_code=201,
    operation_id="sendMessage",
    **operation({200: r.Turn, 201: r.Turn}, 404, 409, body=SendMessage, writes=True),
)
async def send(context: Context, execution_id: str) -> Response:
    """Send the agent a message; the answer is the turn in which a worker of the agent will answer it."""
    given = await context.given()
    return await context.perform(
        lambda: plan_message(context.gate, context.claims, execution_id, given, context.key)
    )


@router.get(
    "/executions/{execution_id}/messages",
    operation_id="listMessages",
    **operation({200: r.Page[r.Message]}, 404, parameters=(ORDER, CURSOR, LIMIT, AFTER)),
)
async def list_messages(context: Context, execution_id: str) -> Response:
    """List the messages of a conversation, in order, or from the newest back."""
    is_descending = context.one_of(ORDER) == "desc"
    await context.settle_after()
    async with context.views_wait.answer():
        row: ExecutionRow = await context.gate.reader.read(execution_of(context.actor, execution_id))
    check_sees(context.actor, row["agent"])
    query = resources.latest_messages if is_descending else resources.messages
    return await log_page(context, execution_id, query, message_json, is_descending=is_descending)


@router.get(
    "/executions/{execution_id}/turns/{turn_id}",
    operation_id="getTurn",
    **operation({200: r.Turn}, 404, parameters=(AFTER,)),
)
async def get_turn(context: Context, execution_id: str, turn_id: str) -> Response:
    """Get a turn as it is now."""
    await context.settle_after()
    row: TurnRow = await context.gate.reader.read(subject_of(context.actor, execution_id, turn_id))
    check_sees(context.actor, row["agent"])
    return answer(context.gate.json(turn_json(row)))


@router.post(
    "/agents/{agent}/turns/claim",
    operation_id="claimTurn",
    **operation({200: r.ClaimedTurn}, 404, 409, body=ClaimTurn, parameters=(WAIT,)),
)
async def claim(context: Context, agent: str) -> Response:
    """Take on the agent's turn that has waited longest; with `wait`, as soon as there is one."""
    wait_s = context.seconds(WAIT)
    given = await context.given()
    check_acts(context.actor, agent)
    body = read_body(ClaimTurn, given())
    place = Agent(context.actor.tenant, context.actor.project, agent)
    now = asyncio.get_running_loop().time
    until_s = now() + wait_s
    # The answer to an earlier request of the same attempt may have been lost.
    if (earlier := context.gate.live.cache.turns.of_attempt(place, body.attempt_id)) is not None:
        return await _claimed(context, earlier, body)
    refused = set[TurnKey]()
    while (turn := await _next(context, place, refused, until_s)) is not None:
        try:
            check_unspent(context.gate, turn, body.attempt_id)
            if (claimed := await _claimed_unless_passed_by(context, turn, body)) is not None:
                return claimed
            # Each turn is tried once: a refusal is an event, and the next one would be another.
            refused.add(turn)
        finally:
            context.gate.live.cache.turns.give_back(turn)
        if wait_s > 0 and now() >= until_s:
            # Another one would be taken on when a proxy is no longer there for the answer.
            break
    return answer(Reply(200, b'{"turn":null}'))


async def _claimed_unless_passed_by(
    context: RequestContext, turn: TurnKey, body: ClaimTurn
) -> Response | None:
    try:
        return await _claimed(context, turn, body)
    except Problem as problem:
        if problem.code not in PASSED_BY:
            raise
        return None


async def _claimed(context: RequestContext, turn: TurnKey, body: ClaimTurn) -> Response:
    return await context.perform(lambda: plan_claim(context.gate, context.actor, turn, body))


async def _next(
    context: RequestContext, agent: Agent, refused: Collection[TurnKey], until_s: float
) -> TurnKey | None:
    """Reserve a turn that was not refused; None if there is none in time. The caller gives it back."""
    live, found = context.gate.live, list[TurnKey]()

    def is_for(turn: TurnKey) -> bool:
        execution: ExecutionRow | None = live.cache.executions.get(turn.key)
        return turn not in refused and (execution is None or execution["lifecycle"] != "paused")

    def is_reserved() -> bool:
        if not found and (turn := live.cache.turns.reserve(agent, is_for)) is not None:
            found.append(turn)
        return bool(found)

    try:
        wait_s = until_s - asyncio.get_running_loop().time()
        await wait_until(context, agent, is_reserved, wait_s)
    except BaseException:
        for turn in found:
            live.cache.turns.give_back(turn)
        raise
    return found[0] if found else None


def _change(verb: str) -> Callable[[RequestContext, str, str], Awaitable[Response]]:
    async def change_turn(context: Context, execution_id: str, turn_id: str) -> Response:
        given = await context.given()
        return await context.perform(
            lambda: plan_turn_change(
                context.gate, context.claims, execution_id, turn_id, verb, given, context.key
            )
        )

    return change_turn


for _verb in VERBS:
    verb_route(router, "/executions/{execution_id}/turns/{turn_id}", _verb, change(r.Turn, _verb.body))(
        _change(_verb.name)
    )
