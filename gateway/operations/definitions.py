"""Publishing: a version is in force on the partitions that have adopted it; `policies` has the parts for policies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from gateway.asking.asker import name_of
from gateway.identity.authentication import check_role
from gateway.live.definitions import Place, Published, Shelf, lies_in
from gateway.live.outcome import Outcome
from gateway.operations.plan import Gate, Given, Plan, Reply, ask_again, definition_ask, never
from gateway.problems import Problem, not_found
from gateway.shares.work import owner_of
from schemas import commands as k
from schemas.events.definitions import PolicyPublished, PrincipalPublished, ToolPublished
from schemas.ids import definition_key, is_client_id
from schemas.message import Message
from schemas.refusals import Refusal
from schemas.token import Claims

ADOPTION_WAIT_S = 5.0
PROJECTS_SHOWN = 5
# The commands that list the existing names.
LISTED = {
    "policy": "placet policy list --all, GET /v1/policies?status=all",
    "tool": "placet tools, GET /v1/tools",
}
T = TypeVar("T")
_PATH = re.compile(r"\w+(\[\d+\]|[.-]\w+)*")

PUBLISHED = PolicyPublished | ToolPublished | PrincipalPublished
Publishing = k.PublishPolicy | k.PublishTool | k.PublishPrincipal


async def plan_tool(gate: Gate, claims: Claims, name: str, given: Given, key: str | None) -> Plan:
    """Publish a tool's MCP definition.

    Args:
        gate: the services of the gateway.
        claims: the caller's; it needs the role operator.
        name: the name to publish it under, which must also be the name in the definition.
        given: the definition; read after the roles were checked.
        key: its idempotency key.

    Raises:
        Problem: the token does not permit it, or the definition is invalid.
    """
    check_role(claims.publisher, "operator")
    # This comes first because it reports every error of the definition: a bad name must not hide any of them.
    text = await gate.definitions.text_of(owner_of(claims.actor), "tool", name, given())
    if not is_client_id(name):
        raise Problem(Refusal.INVALID, "a published tool's name is 1 to 128 of A-Za-z0-9._:-")
    command = k.PublishTool(name=name, definition=text)
    return plan_publication(gate, claims, "tool", command, key)


async def plan_principal(gate: Gate, claims: Claims, name: str, given: Given, key: str | None) -> Plan:
    """Publish a principal; needs the role admin. Arguments and errors as `plan_tool`."""
    check_role(claims.publisher, "admin")
    text = await gate.definitions.text_of(owner_of(claims.actor), "principal", name, given())
    command = k.PublishPrincipal(name=name, document=text)
    return plan_publication(gate, claims, "principal", command, key)


def plan_publication(
    gate: Gate,
    claims: Claims,
    kind: str,
    command: Publishing,
    key: str | None,
    warnings: Sequence[Mapping[str, Any]] = (),
) -> Plan:
    """Send the next version of a definition to the decider, and wait until it is in force.

    Args:
        gate: the services of the gateway.
        claims: the caller's.
        kind: policy, tool or principal.
        command: the command.
        key: its idempotency key.
        warnings: doubtful parts of the definition, returned with the answer.
    """
    # A command for the tenant is sent in the tenant's name; one for a project in the project's, or by the tenant.
    actor, project = claims.publisher, claims.definitions_project
    address = definition_key(actor.tenant, kind, command.name, project)
    name = name_of(actor, route_of(address), key)

    async def deliver(_: None, outcome: Outcome) -> Reply:
        version, offset = _version_of(gate, (actor.tenant, project, command.name), kind, command, outcome)
        resource = {
            "name": command.name,
            "project": project,
            "version": version,
            "unchanged": not isinstance(outcome.body, PUBLISHED),
            **await adoption(gate, offset),
            "warnings": list(warnings),
        }
        return adoption_reply(gate, resource)

    ask = definition_ask(gate, address, command, actor, name)
    unanswered = ask_again("the decider has not answered yet: publish again")
    return Plan(ask, None, never, unanswered, _with_errors, deliver=deliver)


def route_of(address: bytes) -> str:
    """Return the REST path of the definition at an address."""
    return f"/v1/{address.partition(b'/')[2].decode()}"


async def adoption(gate: Gate, offset: int) -> dict[str, Any]:
    """Wait briefly until the partitions have adopted the definitions up to an offset; name those that have not."""
    await gate.live.until(lambda: not gate.live.missing_adoptions(offset), ADOPTION_WAIT_S)
    missing = gate.live.missing_adoptions(offset)
    return {"adopted": not missing, "pending": missing}


def adoption_reply(gate: Gate, resource: dict[str, Any]) -> Reply:
    """Answer a change of a definition: 200 when every partition has adopted it, else 202."""
    return gate.json(resource, 200 if resource["adopted"] else 202)


def _version_of(
    gate: Gate, place: Place, kind: str, command: Publishing, outcome: Outcome
) -> tuple[int, int]:
    body: Message | None = outcome.body
    if isinstance(body, PUBLISHED):
        return body.version, outcome.last_offset
    # It was published before, by another command: find the version that has exactly this text.
    known = gate.live.definitions
    shelf = {"policy": known.policies, "tool": known.tools, "principal": known.principals}[kind]
    versions: list[Published] = shelf.get(place, [])
    text = command.definition if isinstance(command, k.PublishTool) else command.document
    same = [published for published in versions if published.document == text] or versions
    if not same:
        raise Problem(Refusal.UNAVAILABLE, "the definition is not known here yet: try again", retry_after=1)
    return same[-1].version, same[-1].offset


def _with_errors(problem: Problem) -> Problem:
    """A refusal of the decider with its `errors`: the path is at the start of the detail, if it is given at all."""
    if problem.code is Refusal.INVALID and "errors" not in problem.fields:
        place, _, message = problem.detail.partition(": ")
        path = place if message and _PATH.fullmatch(place) else ""
        entry = {"path": path, "code": "invalid", "message": message if path else problem.detail}
        return Problem(problem.code, problem.detail, errors=[entry])
    return problem


async def looked_up(gate: Gate, look: Callable[[], T]) -> T:
    """Return the result of a search in the definitions; search again after a full read of the log if it is empty.

    Raises:
        Problem: 503, the log is not read in time.
    """
    if found := look():
        return found
    # Another gateway may have answered the publisher.
    await gate.reader.definitions_caught_up()
    return look()


def missing(shelf: Shelf, claims: Claims, name: str, what: str) -> Problem:
    """404; for a caller with a token of the whole tenant it names the projects that have such a definition."""
    projects = [] if claims.wide is None else lies_in(shelf, claims.actor.tenant, name)
    if not projects:
        # Only a text that can be a name is repeated in the answer.
        return not_found(f"{what} {name}: {LISTED[what]}" if is_client_id(name) else what)
    shown = ", ".join(projects[:PROJECTS_SHOWN])
    hint = f"--project {projects[0]}, Placet-Project: {projects[0]}"
    asked = f"in project {claims.asked}" if claims.asked else "for the whole tenant"
    return Problem(Refusal.NOT_FOUND, f"no such {what} {asked}; it exists in project {shown}: {hint}")
