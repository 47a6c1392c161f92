"""/v1/tools:run and /v1/human-input: the tool `human_input` by the addresses of its earlier implementations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.operations.human_input import plan_tool, task_reply
from gateway.rest.documented import operation
from gateway.rest.parameters import AFTER, EXECUTION, WAIT
from gateway.rest.request_context import RequestContext, answer, context_of
from gateway.rest.requests import read_request

router = APIRouter(prefix="/v1", tags=["human input"])
Context = Annotated[RequestContext, Depends(context_of)]


@router.post(
    "/tools:run",
    operation_id="runTool",
    **operation({200: r.ToolStarted}, 404, 409, body=b.RunTool, writes=True),
)
async def run_tool(context: Context) -> Response:
    """Ask a person by the tool `human_input`; it answers with a task id at once, without waiting for the person."""
    given = await context.given()
    return await context.perform(lambda: plan_tool(context.gate, context.claims, given, context.key))


@router.get(
    "/human-input/{task_id}",
    operation_id="getHumanInput",
    **operation({200: r.HumanInput, 202: r.HumanInput}, 404, 409, parameters=(EXECUTION, WAIT, AFTER)),
)
async def get_human_input(context: Context, task_id: str) -> Response:
    """Get the answer to a task: 202 while nobody has answered; with `wait`, as soon as somebody has."""
    return answer(task_reply(await read_request(context, task_id)))
