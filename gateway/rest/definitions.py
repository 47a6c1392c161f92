"""/v1/tools and /v1/principals: the published definitions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import resources as r
from gateway.identity.doors import check_reads, check_reads_tools
from gateway.live.definitions import Published, Shelf, by_name, newest, principal_json, tool_json
from gateway.operations.definitions import looked_up, missing, plan_principal, plan_tool
from gateway.rest.documented import operation
from gateway.rest.door import Door, answer, door_of
from gateway.rest.parameters import AFTER, CURSOR
from schemas.principals import PrincipalDocument
from schemas.tool_definition import ToolDefinition

router = APIRouter(prefix="/v1", tags=["definitions"])
AtDoor = Annotated[Door, Depends(door_of)]


@router.put(
    "/tools/{name}",
    operation_id="publishTool",
    **operation({200: r.Published, 202: r.Published}, 409, body=ToolDefinition, named="name", writes=True),
)
async def put_tool(door: AtDoor, name: str) -> Response:
    """Publish a tool: 200 when every partition has adopted it, 202 with the partitions that have not yet."""
    given = await door.given()
    return await door.perform(lambda: plan_tool(door.gate, door.claims, name, given, door.key))


@router.get(
    "/tools",
    operation_id="listTools",
    **operation({200: r.Page[r.Tool]}, parameters=(CURSOR, AFTER)),
)
async def list_tools(door: AtDoor) -> Response:
    """List the newest version of every tool of the project and of its tenant."""
    check_reads_tools(door.actor)
    await door.settle_after()
    tools = _newest(door, door.gate.live.definitions.tools)
    return await door.listed_after(tools, tool_json, by_name)


@router.get(
    "/tools/{name}",
    operation_id="getTool",
    **operation({200: r.Tool}, 404, parameters=(AFTER,)),
)
async def get_tool(door: AtDoor, name: str) -> Response:
    """Get the newest version of a tool: the project's own, else the tenant's."""
    check_reads_tools(door.actor)
    await door.settle_after()
    tools, project = door.gate.live.definitions.tool_versions, door.claims.definitions_project
    versions = await looked_up(door.gate, lambda: tools(door.actor.tenant, project, name))
    if not versions:
        raise missing(door.gate.live.definitions.tools, door.claims, name, "tool")
    return answer(door.gate.json(tool_json(versions[-1])))


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
async def put_principal(door: AtDoor, name: str) -> Response:
    """Publish a person or service with its accounts and roles: 200 when every partition has adopted it."""
    given = await door.given()
    return await door.perform(lambda: plan_principal(door.gate, door.claims, name, given, door.key))


@router.get(
    "/principals",
    operation_id="listPrincipals",
    **operation({200: r.Page[r.Principal]}, parameters=(CURSOR, AFTER)),
)
async def list_principals(door: AtDoor) -> Response:
    """List the newest version of every principal of the project and of its tenant."""
    check_reads(door.actor)
    await door.settle_after()
    principals = _newest(door, door.gate.live.definitions.principals)
    return await door.listed_after(principals, principal_json, by_name)


def _newest(door: Door, shelf: Shelf) -> list[Published]:
    return newest(shelf, door.actor.tenant, door.claims.definitions_project)
