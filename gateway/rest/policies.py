"""/v1/policies and /v1/rules: published policies, those in force, and what a document would change."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.identity.doors import check_reads
from gateway.live.definitions import Published, by_name, in_force, newest, policy_json, seen
from gateway.operations.definitions import looked_up, missing
from gateway.operations.policies import check_policy, plan_policy, plan_retirement
from gateway.problems import Problem, not_found
from gateway.rest.documented import operation
from gateway.rest.door import Door, answer, door_of, read_raw
from gateway.rest.parameters import AFTER, CURSOR, Number, Word
from gateway.strictjson import BODY_MAX_BYTES, parse
from schemas.policy_document import PolicyDocument
from schemas.refusals import Refusal

router = APIRouter(prefix="/v1", tags=["definitions"])
AtDoor = Annotated[Door, Depends(door_of)]
STATUS = Word("status", "`in_force` if it is left out.", words=("in_force", "retired", "all"))
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
async def put_policy(door: AtDoor, name: str, request: Request) -> Response:
    """Publish a policy, as YAML text or JSON: 200 when every partition has adopted it.

    `warnings` lists its doubtful parts, and how it and the policies in force shadow each other.
    """
    document = await _document(door, request)
    return await door.perform(lambda: plan_policy(door.gate, door.claims, name, document, door.key))


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
async def check(door: AtDoor, name: str, request: Request) -> Response:
    """Check a document beside the policies in force: list every error and warning, and what it would change."""
    document = await _document(door, request)
    return answer(await door.priced(check_policy(door.gate, door.claims, name, document)))


@router.post(
    "/policies/{name}/retire",
    operation_id="retirePolicy",
    **operation({200: r.RetiredPolicy, 202: r.RetiredPolicy}, 404, 409, body=b.RetirePolicy, writes=True),
)
async def retire(door: AtDoor, name: str) -> Response:
    """Take a policy out of force: 200 when no partition uses it any more. Publishing it again puts it back."""
    given = await door.given()
    return await door.perform(lambda: plan_retirement(door.gate, door.claims, name, given, door.key))


@router.get(
    "/policies",
    operation_id="listPolicies",
    **operation({200: r.Page[r.PolicyVersion]}, parameters=(STATUS, CURSOR, AFTER)),
)
async def list_policies(door: AtDoor) -> Response:
    """List the newest version of every policy of the project and of its tenant, without retired policies."""
    check_reads(door.actor)
    await door.settle_after()
    status = door.one_of(STATUS) or "in_force"
    policies = newest(door.gate.live.definitions.policies, door.actor.tenant, door.claims.definitions_project)
    wanted = [one for one in policies if status == "all" or (one.retired is None) == (status == "in_force")]
    return await door.listed_after(wanted, policy_json, by_name)


@router.get(
    "/policies/{name}",
    operation_id="getPolicy",
    **operation({200: r.PolicyVersion}, 404, parameters=(VERSION, AFTER)),
)
async def get_policy(door: AtDoor, name: str) -> Response:
    """Get the newest or a given version of a policy: the project's own, else the tenant's."""
    check_reads(door.actor)
    await door.settle_after()
    version = door.number(VERSION)
    found = await looked_up(
        door.gate, lambda: [one for one in _versions(door, name) if version in (None, one.version)]
    )
    versions = _versions(door, name)
    if not versions:
        raise missing(door.gate.live.definitions.policies, door.claims, name, "policy")
    if not found:
        raise not_found(f"version {version} of the policy {name}: its newest is {versions[-1].version}")
    return answer(door.gate.json(policy_json(found[-1])))


@router.get(
    "/policies/{name}/versions",
    operation_id="listPolicyVersions",
    **operation({200: r.Page[r.PolicyVersion]}, 404, parameters=(CURSOR, AFTER)),
)
async def list_versions(door: AtDoor, name: str) -> Response:
    """List all versions of a policy, newest first: the project's own, else the tenant's."""
    check_reads(door.actor)
    await door.settle_after()
    versions = await looked_up(door.gate, lambda: _versions(door, name))
    if not versions:
        raise missing(door.gate.live.definitions.policies, door.claims, name, "policy")
    return await door.listed_after(reversed(versions), policy_json, lambda one: (-one.version,))


@router.get(
    "/rules",
    operation_id="listRules",
    **operation({200: r.Page[Any]}, parameters=(CURSOR,)),
)
async def list_rules(door: AtDoor) -> Response:
    """List the rules of every policy in force, in the order of the policies."""
    check_reads(door.actor)
    policies = in_force(
        door.gate.live.definitions.policies, door.actor.tenant, door.claims.definitions_project
    )
    rules = (rule for policy in policies for rule in _rules(policy))
    return await door.listed_after(rules, _rule_json, _rule_place)


def _versions(door: Door, name: str) -> list[Published]:
    policies = door.gate.live.definitions.policies
    return seen(policies, door.actor.tenant, door.claims.definitions_project, name)


def _rules(policy: Published) -> list[Rule]:
    rules = json.loads(policy.document).get("rules", [])
    return [(policy, place, rule) for place, rule in enumerate(rules)]


def _rule_place(found: Rule) -> tuple[str, str, int]:
    policy, place, _ = found
    return *by_name(policy), place


def _rule_json(found: Rule) -> dict[str, Any]:
    policy, _, rule = found
    return {"policy": policy.name, "project": policy.project, "version": policy.version, **rule}


async def _document(door: Door, request: Request) -> Any:
    """Read the request's body now; the result parses it, and raises what is wrong with it."""
    raw = await read_raw(request)
    is_text = "yaml" in request.headers.get("content-type", "")
    if raw is not None and not is_text:
        return await door.taken_in(raw, parse)

    def read() -> Any:
        if raw is None:
            raise Problem(Refusal.TOO_LARGE, f"the body is over {BODY_MAX_BYTES} bytes")
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise Problem(Refusal.MALFORMED, "the policy is not UTF-8 text") from error

    return read
