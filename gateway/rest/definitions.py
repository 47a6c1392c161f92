"""/v1/tools, /v1/policies, /v1/principals and /v1/rules: what is published."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.identity.doors import check_reads
from gateway.live.definitions import Published, Shelf, newest, policy_json, principal_json, seen, tool_json
from gateway.operations.definitions import publish_policy, publish_principal, publish_tool
from gateway.problems import Problem, not_found
from gateway.rest.documented import AFTER, answers, documented
from gateway.rest.door import Door, answer, door_of, read_raw
from gateway.strictjson import BODY_MAX_BYTES, parse
from schemas.policy_document import PolicyDocument
from schemas.principals import PrincipalDocument
from schemas.refusals import Refusal

router = APIRouter(prefix="/v1", tags=["definitions"])
AtDoor = Annotated[Door, Depends(door_of)]


@router.put(
    "/tools/{name}",
    operation_id="publishTool",
    responses=answers({200: r.Published, 202: r.Published}, 400, 403, 409, 413, 422),
    openapi_extra=documented(body=b.ToolDefinition, writes=True),
)
async def put_tool(door: AtDoor, name: str) -> Response:
    """Publish a tool: 200 when every partition judges by it, 202 with those that do not yet."""
    given = await door.given()
    return answer(await publish_tool(door.gate, door.claims, name, given, door.key))


@router.get(
    "/tools",
    operation_id="listTools",
    responses=answers({200: r.Page[r.Tool]}),
    openapi_extra=documented(query=(AFTER,)),
)
async def list_tools(door: AtDoor) -> Response:
    """Every tool of the project and of its tenant at its newest version."""
    await door.settle_after()
    tools = _newest(door, door.gate.live.definitions.tools)
    return await door.listed(tools, tool_json)


@router.get(
    "/tools/{name}",
    operation_id="getTool",
    responses=answers({200: r.Tool}, 404),
    openapi_extra=documented(query=(AFTER,)),
)
async def get_tool(door: AtDoor, name: str) -> Response:
    """A tool at its newest version: the project's own, else the tenant's."""
    await door.settle_after()
    versions = door.gate.live.definitions.tool_versions(
        door.actor.tenant, door.claims.definitions_project, name
    )
    if not versions:
        raise not_found("tool")
    return answer(door.gate.json(tool_json(versions[-1])))


@router.put(
    "/policies/{name}",
    operation_id="publishPolicy",
    responses=answers({200: r.Published, 202: r.Published}, 400, 403, 409, 413, 422),
    openapi_extra=documented(
        body=PolicyDocument, media_types=("application/json", "application/yaml"), writes=True
    ),
)
async def put_policy(door: AtDoor, name: str, request: Request) -> Response:
    """Publish a policy, as YAML text or JSON: 200 when every partition judges by it."""
    raw = await read_raw(request)
    content_type = request.headers.get("content-type", "")
    return answer(
        await publish_policy(door.gate, door.claims, name, lambda: _document(raw, content_type), door.key)
    )


@router.get(
    "/policies",
    operation_id="listPolicies",
    responses=answers({200: r.Page[r.PolicyVersion]}),
    openapi_extra=documented(query=(AFTER,)),
)
async def list_policies(door: AtDoor) -> Response:
    """Every policy of the project and of its tenant at its newest version."""
    await door.settle_after()
    policies = _newest(door, door.gate.live.definitions.policies)
    return await door.listed(policies, policy_json)


@router.get(
    "/policies/{name}/versions",
    operation_id="listPolicyVersions",
    responses=answers({200: r.Page[r.PolicyVersion]}, 404),
    openapi_extra=documented(query=(AFTER,)),
)
async def list_versions(door: AtDoor, name: str) -> Response:
    """All versions of a policy, newest first: of the project's own, else of the tenant's."""
    await door.settle_after()
    policies = door.gate.live.definitions.policies
    versions = seen(policies, door.actor.tenant, door.claims.definitions_project, name)
    if not versions:
        raise not_found("policy")
    return await door.listed(reversed(versions), policy_json)


@router.put(
    "/principals/{name}",
    operation_id="publishPrincipal",
    responses=answers({200: r.Published, 202: r.Published}, 400, 403, 409, 413, 422),
    openapi_extra=documented(body=PrincipalDocument, writes=True),
)
async def put_principal(door: AtDoor, name: str) -> Response:
    """Publish a person or service, its accounts and roles: 200 when every partition judges by it."""
    given = await door.given()
    return answer(await publish_principal(door.gate, door.claims, name, given, door.key))


@router.get(
    "/principals",
    operation_id="listPrincipals",
    responses=answers({200: r.Page[r.Principal]}, 403),
    openapi_extra=documented(query=(AFTER,)),
)
async def list_principals(door: AtDoor) -> Response:
    """Every principal of the project and of its tenant at its newest version."""
    check_reads(door.actor)
    await door.settle_after()
    principals = _newest(door, door.gate.live.definitions.principals)
    return await door.listed(principals, principal_json)


@router.get("/rules", operation_id="listRules", responses=answers({200: r.Page[Any]}))
async def list_rules(door: AtDoor) -> Response:
    """The rules of every policy at its newest version, in the order of their policies."""
    policies = _newest(door, door.gate.live.definitions.policies)
    return await door.listed((rule for policy in policies for rule in _rules(policy)), dict)


def _newest(door: Door, shelf: Shelf) -> list[Published]:
    return newest(shelf, door.actor.tenant, door.claims.definitions_project)


def _rules(policy: Published) -> list[dict[str, Any]]:
    rules = json.loads(policy.document).get("rules", [])
    return [
        {"policy": policy.name, "project": policy.project, "version": policy.version, **rule}
        for rule in rules
    ]


def _document(raw: bytes | None, content_type: str) -> Any:
    if raw is None:
        raise Problem(Refusal.TOO_LARGE, f"the body is over {BODY_MAX_BYTES} bytes")
    if "yaml" not in content_type:
        return parse(raw)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Problem(Refusal.MALFORMED, "the policy is not UTF-8 text") from error
