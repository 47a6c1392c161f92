"""Policies: checked, published and retired. Doubtful parts of a policy are reported as warnings, nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.asking.asker import name_of
from gateway.bodies import RetirePolicy, read_body
from gateway.checking.definition_readers import PolicyRead
from gateway.identity.authentication import check_reads, check_role
from gateway.live.definitions import Published, in_force, newest, policy_json
from gateway.live.outcome import Outcome
from gateway.operations.definitions import adoption, adoption_reply, plan_publication, route_of
from gateway.operations.plan import Gate, Given, Plan, Reply, ask_again, definition_ask, never
from gateway.problems import Problem, not_found
from gateway.shares.work import owner_of
from schemas import commands as k
from schemas.ids import definition_key, is_client_id
from schemas.refusals import Refusal
from schemas.token import Claims

# Policies in force beyond this size are not compared: warnings are a help, and must not prevent publishing.
BESIDE_MAX_CHARS = 4 * 1024 * 1024
ERRORS_MAX = 100

Document = Callable[[], str | Any]


async def plan_policy(gate: Gate, claims: Claims, name: str, document: Document, key: str | None) -> Plan:
    """Publish a policy document.

    Args:
        gate: the services of the gateway.
        claims: the caller's; it needs the role operator.
        name: the policy's name, which must also be the name in the document.
        document: YAML text, or parsed JSON; read after the roles were checked.
        key: its idempotency key.

    Raises:
        Problem: the token does not permit it, the document is invalid, or it cannot be checked now.
    """
    check_role(claims.publisher, "operator")
    read, warnings = await _read(gate, claims, name, document(), publishes=True)
    if read.text is None:
        raise _refused(read)
    command = k.PublishPolicy(name=name, document=read.text)
    return plan_publication(gate, claims, "policy", command, key, warnings)


async def check_policy(gate: Gate, claims: Claims, name: str, document: Document) -> Reply:
    """Report the errors and warnings of a document and what it would change; publish nothing.

    Args:
        gate: the services of the gateway.
        claims: the caller's; it must be permitted to read the project.
        name: the name that it would be published under.
        document: as for `plan_policy`.

    Raises:
        Problem: 403, the actor may not read the project; or the document cannot be checked now.
    """
    check_reads(claims.actor)
    read, warnings = await _read(gate, claims, name, document(), publishes=False)
    errors = [problem for problem in read.problems if problem["severity"] == "error"]
    mine = _own(gate, claims, name)
    resource = {
        "name": name,
        "project": claims.definitions_project,
        "in_force": mine.version if mine is not None and mine.retired is None else None,
        "problems": [*errors, *warnings],
        "difference": read.difference,
    }
    return gate.json(resource)


def plan_retirement(gate: Gate, claims: Claims, name: str, given: Given, key: str | None) -> Plan:
    """Take a policy out of force: 200 when no partition uses it any more, 202 with the partitions that still do.

    Args:
        gate: the services of the gateway.
        claims: the caller's; it needs the role operator, in the policy's project or in the whole tenant.
        name: the policy's.
        given: the body.
        key: its idempotency key.

    Raises:
        Problem: the token does not permit it, or the name or the body is invalid.
    """
    actor, project = claims.publisher, claims.definitions_project
    check_role(actor, "operator")
    if not is_client_id(name):
        raise not_found("policy")
    body = read_body(RetirePolicy, given())
    command = k.RetirePolicy(name=name, version=body.version or 0, reason=body.reason)
    address = definition_key(actor.tenant, "policy", name, project)
    name_of_command = name_of(actor, f"{route_of(address)}/retire", key)

    async def deliver(_: None, outcome: Outcome) -> Reply:
        found = _own(gate, claims, name)
        if found is None:
            raise Problem(Refusal.UNAVAILABLE, "the policy is not known here yet: try again", retry_after=1)
        offset = found.retired.offset if found.retired else found.offset
        return adoption_reply(gate, policy_json(found) | await adoption(gate, offset))

    ask = definition_ask(gate, address, command, actor, name_of_command)
    return Plan(
        ask, None, never, ask_again("the decider has not answered yet: retire it again"), deliver=deliver
    )


async def _read(
    gate: Gate, claims: Claims, name: str, given: Any, *, publishes: bool
) -> tuple[PolicyRead, list[dict[str, Any]]]:
    """Check a document beside the published ones; return the result and its warnings, also about skipped policies."""
    tenant, project = claims.actor.tenant, claims.definitions_project
    known = gate.live.definitions
    rows: list[dict[str, Any]] = []
    size, left_out = 0, 0
    for one in in_force(known.policies, tenant, project):
        size += len(one.document)
        if size > BESIDE_MAX_CHARS:
            left_out += 1
        else:
            rows.append({"document": one.document, "version": one.version, "project": one.project})
    tools = sorted({tool.name for tool in newest(known.tools, tenant, project)})
    question = {"name": name, "given": given, "project": project, "policies": rows, "tools": tools}
    read = await gate.definitions.policy(owner_of(claims.actor), question, publishes=publishes)
    warnings = [problem for problem in read.problems if problem["severity"] == "warning"]
    if left_out:
        message = f"{left_out} of the policies in force were not compared: they are too large together"
        warnings.append({"path": "scope", "code": "not_compared", "message": message, "severity": "warning"})
    return read, warnings


def _own(gate: Gate, claims: Claims, name: str) -> Published | None:
    """Return the newest version under a name in exactly the project, or the tenant, that the caller publishes for."""
    place = (claims.actor.tenant, claims.definitions_project, name)
    versions = gate.live.definitions.policies.get(place)
    return versions[-1] if versions else None


def _refused(read: PolicyRead) -> Problem:
    errors = [problem for problem in read.problems if problem["severity"] == "error"]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    detail = f"{errors[0]['path']}: {errors[0]['message']}{more}"
    return Problem(Refusal.INVALID, detail, errors=read.problems[:ERRORS_MAX])
