"""/v1/policies and /v1/rules: published policies, those in force, and what a document would change."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.identity.authentication import check_reads
from gateway.live.definitions import Published, by_name, in_force, newest, policy_json, seen
from gateway.operations.definitions import looked_up, missing
from gateway.operations.policies import check_policy, plan_policy, plan_retirement
from gateway.problems import Problem, not_found
from gateway.rest.documented import operation
from gateway.rest.parameters import AFTER, CURSOR, Choice, Number
from gateway.rest.request_context import RequestContext, answer, context_of
from gateway.strictjson import parse
from schemas.policy_document import PolicyDocument
from schemas.refusals import Refusal

router = APIRouter(prefix="/v1", tags=["definitions"])
Context = Annotated[RequestContext, Depends(context_of)]
STATUS = Choice("status", "`in_force` if it is left out.", choices=("in_force", "retired", "all"))
VERSION = Number("version", "The version; the newest if it is left out.")
# A rule of a policy: the policy, the rule's index and the rule.
Rule = tuple[Published, int, dict[str, Any]]
DOCUMENT = ("application/json", "application/yaml")


@router.put(
    "/policies/{name}",
    operation_id="publishPolicy",
    **operation(
        {200: r.Published, 202: r.Published},
        409,
        body=PolicyDocument,
        media_types=DOCUMENT,
        writes=True,
    ),
)
async def put_policy(context: Context, name: str, request: Request) -> Response:
    """Publish a policy, as YAML text or JSON: 200 when every partition has adopted it.

    `warnings` lists its doubtful parts, and how it and the policies in force shadow each other.
    """
    document = await _document(context, request)
    return await context.perform(
        lambda: plan_policy(context.gate, context.claims, name, document, context.key)
    )


@router.post(
    "/policies/{name}/check",
    operation_id="checkPolicy",
    **operation(
        {200: r.PolicyCheck},
        body=PolicyDocument,
        media_types=DOCUMENT,
        any_value="A policy, or the draft of one: what is wrong with it is listed under `problems`.",
    ),
)
async def check(context: Context, name: str, request: Request) -> Response:
    """Check a document beside the policies in force: list every error and warning, and what it would change."""
    document = await _document(context, request)
    return answer(await context.priced(check_policy(context.gate, context.claims, name, document)))


@router.post(
    "/policies/{name}/retire",
    operation_id="retirePolicy",
    **operation({200: r.RetiredPolicy, 202: r.RetiredPolicy}, 404, 409, body=b.RetirePolicy, writes=True),
)
async def retire(context: Context, name: str) -> Response:
    """Take a policy out of force: 200 when no partition uses it any more. Publishing it again puts it back."""
    given = await context.given()
    return await context.perform(
        lambda: plan_retirement(context.gate, context.claims, name, given, context.key)
    )


@router.get(
    "/policies",
    operation_id="listPolicies",
    **operation({200: r.Page[r.PolicyVersion]}, parameters=(STATUS, CURSOR, AFTER)),
)
async def list_policies(context: Context) -> Response:
    """List the newest version of every policy of the project and of its tenant, without retired policies."""
    check_reads(context.actor)
    await context.settle_after()
    status = context.one_of(STATUS) or "in_force"
    policies = newest(
        context.gate.live.definitions.policies, context.actor.tenant, context.claims.definitions_project
    )
    wanted = [one for one in policies if status == "all" or (one.retired is None) == (status == "in_force")]
    return await context.listed_after(wanted, policy_json, by_name)


@router.get(
    "/policies/{name}",
    operation_id="getPolicy",
    **operation({200: r.PolicyVersion}, 404, parameters=(VERSION, AFTER)),
)
async def get_policy(context: Context, name: str) -> Response:
    """Get the newest or a given version of a policy: the project's own, else the tenant's."""
    check_reads(context.actor)
    await context.settle_after()
    version = context.number(VERSION)
    found = await looked_up(
        context.gate, lambda: [one for one in _versions(context, name) if version in (None, one.version)]
    )
    versions = _versions(context, name)
    if not versions:
        raise missing(context.gate.live.definitions.policies, context.claims, name, "policy")
    if not found:
        raise not_found(f"version {version} of the policy {name}: its newest is {versions[-1].version}")
    return answer(context.gate.json(policy_json(found[-1])))


@router.get(
    "/policies/{name}/versions",
    operation_id="listPolicyVersions",
    **operation({200: r.Page[r.PolicyVersion]}, 404, parameters=(CURSOR, AFTER)),
)
async def list_versions(context: Context, name: str) -> Response:
    """List all versions of a policy, newest first: the project's own, else the tenant's."""
    check_reads(context.actor)
    await context.settle_after()
    versions = await looked_up(context.gate, lambda: _versions(context, name))
    if not versions:
        raise missing(context.gate.live.definitions.policies, context.claims, name, "policy")
    return await context.listed_after(reversed(versions), policy_json, lambda one: (-one.version,))


@router.get(
    "/rules",
    operation_id="listRules",
    **operation({200: r.Page[Any]}, parameters=(CURSOR,)),
)
async def list_rules(context: Context) -> Response:
    """List the rules of every policy in force, in the order of the policies."""
    check_reads(context.actor)
    policies = in_force(
        context.gate.live.definitions.policies, context.actor.tenant, context.claims.definitions_project
    )
    rules = (rule for policy in policies for rule in _rules(policy))
    return await context.listed_after(rules, _rule_json, _rule_place)


def _versions(context: RequestContext, name: str) -> list[Published]:
    policies = context.gate.live.definitions.policies
    return seen(policies, context.actor.tenant, context.claims.definitions_project, name)


def _rules(policy: Published) -> list[Rule]:
    rules = json.loads(policy.document).get("rules", [])
    return [(policy, place, rule) for place, rule in enumerate(rules)]


def _rule_place(found: Rule) -> tuple[str, str, int]:
    policy, place, _ = found
    return *by_name(policy), place


def _rule_json(found: Rule) -> dict[str, Any]:
    policy, _, rule = found
    return {"policy": policy.name, "project": policy.project, "version": policy.version, **rule}


async def _document(context: RequestContext, request: Request) -> Any:
    """Read the request's body now; the result parses it, and raises what is wrong with it."""
    is_text = "yaml" in request.headers.get("content-type", "")
    return await context.taken_in(_text if is_text else parse)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Problem(Refusal.MALFORMED, "the policy is not UTF-8 text") from error
