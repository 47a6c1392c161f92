"""/v1/tools and /v1/principals: the published definitions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import resources as r
from gateway.identity.authentication import check_reads, check_reads_tools
from gateway.live.definitions import Published, Shelf, by_name, newest, principal_json, tool_json
from gateway.operations.definitions import looked_up, missing, plan_principal, plan_tool
from gateway.rest.documented import operation
from gateway.rest.parameters import AFTER, CURSOR
from gateway.rest.request_context import RequestContext, answer, context_of
from schemas.principals import PrincipalDocument
from schemas.tool_definition import ToolDefinition

router = APIRouter(prefix="/v1", tags=["definitions"])
Context = Annotated[RequestContext, Depends(context_of)]


@router.put(
    "/tools/{name}",
    operation_id="publishTool",
    **operation({200: r.Published, 202: r.Published}, 409, body=ToolDefinition, named="name", writes=True),
)
async def put_tool(context: Context, name: str) -> Response:
    """Publish a tool: 200 when every partition has adopted it, 202 with the partitions that have not yet."""
    given = await context.given()
    return await context.perform(lambda: plan_tool(context.gate, context.claims, name, given, context.key))


@router.get(
    "/tools",
    operation_id="listTools",
    **operation({200: r.Page[r.Tool]}, parameters=(CURSOR, AFTER)),
)
async def list_tools(context: Context) -> Response:
    """List the newest version of every tool of the project and of its tenant."""
    check_reads_tools(context.actor)
    await context.settle_after()
    tools = _newest(context, context.gate.live.definitions.tools)
    return await context.listed_after(tools, tool_json, by_name)


@router.get(
    "/tools/{name}",
    operation_id="getTool",
    **operation({200: r.Tool}, 404, parameters=(AFTER,)),
)
async def get_tool(context: Context, name: str) -> Response:
    """Get the newest version of a tool: the project's own, else the tenant's."""
    check_reads_tools(context.actor)
    await context.settle_after()
    tools, project = context.gate.live.definitions.tool_versions, context.claims.definitions_project
    versions = await looked_up(context.gate, lambda: tools(context.actor.tenant, project, name))
    if not versions:
        raise missing(context.gate.live.definitions.tools, context.claims, name, "tool")
    return answer(context.gate.json(tool_json(versions[-1])))


@router.put(
    "/principals/{name}",
    operation_id="publishPrincipal",
    **operation(
        {200: r.Published, 202: r.Published},
        409,
        body=PrincipalDocument,
        named="principal",
        writes=True,
    ),
)
async def put_principal(context: Context, name: str) -> Response:
    """Publish a person or service with its accounts and roles: 200 when every partition has adopted it."""
    given = await context.given()
    return await context.perform(
        lambda: plan_principal(context.gate, context.claims, name, given, context.key)
    )


@router.get(
    "/principals",
    operation_id="listPrincipals",
    **operation({200: r.Page[r.Principal]}, parameters=(CURSOR, AFTER)),
)
async def list_principals(context: Context) -> Response:
    """List the newest version of every principal of the project and of its tenant."""
    check_reads(context.actor)
    await context.settle_after()
    principals = _newest(context, context.gate.live.definitions.principals)
    return await context.listed_after(principals, principal_json, by_name)


def _newest(context: RequestContext, shelf: Shelf) -> list[Published]:
    return newest(shelf, context.actor.tenant, context.claims.definitions_project)
