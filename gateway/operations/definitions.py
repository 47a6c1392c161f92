"""Publishing policies, tools and principals: a version is in force where a partition has adopted it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.asking import Ask, name_of
from gateway.identity.doors import check_role
from gateway.live.definitions import Place, Published
from gateway.live.outcome import Outcome
from gateway.operations.plan import ANSWER_TIMEOUT_S, Gate, Given, Reply, refusal_of
from gateway.problems import Problem
from schemas import commands as k
from schemas.events.definitions import PolicyPublished, PrincipalPublished, ToolPublished
from schemas.ids import definition_key, is_client_id
from schemas.message import Message
from schemas.refusals import Refusal
from schemas.token import Claims

ADOPTION_WAIT_S = 5.0

Publishing = k.PublishPolicy | k.PublishTool | k.PublishPrincipal


async def publish_policy(
    gate: Gate, claims: Claims, name: str, document: Callable[[], str | Any], key: str | None
) -> Reply:
    """Publish a policy document.

    Args:
        gate: what is needed.
        claims: of who asks; needs the role operator.
        name: the policy's name, which the document must say too.
        document: YAML text, or parsed JSON; read after the roles were looked at.
        key: its idempotency key.

    Raises:
        Problem: a refusal, or nobody has answered in time.
    """
    check_role(claims.publisher, "operator")
    text = await gate.definitions.text_of(claims.actor.tenant, "policy", name, document())
    command = k.PublishPolicy(name=name, document=text)
    return await _publish(gate, claims, "policy", command, key)


async def publish_tool(gate: Gate, claims: Claims, name: str, given: Given, key: str | None) -> Reply:
    """Publish a tool's MCP definition; arguments and errors as `publish_policy`."""
    check_role(claims.publisher, "operator")
    if not is_client_id(name):
        raise Problem(Refusal.INVALID, "a published tool's name is 1 to 128 of A-Za-z0-9._:-")
    text = await gate.definitions.text_of(claims.actor.tenant, "tool", name, given())
    command = k.PublishTool(name=name, definition=text)
    return await _publish(gate, claims, "tool", command, key)


async def publish_principal(gate: Gate, claims: Claims, name: str, given: Given, key: str | None) -> Reply:
    """Publish a principal; needs the role admin. Arguments and errors as `publish_policy`."""
    check_role(claims.publisher, "admin")
    text = await gate.definitions.text_of(claims.actor.tenant, "principal", name, given())
    command = k.PublishPrincipal(name=name, document=text)
    return await _publish(gate, claims, "principal", command, key)


async def _publish(gate: Gate, claims: Claims, kind: str, command: Publishing, key: str | None) -> Reply:
    # What is asked for the tenant is asked in its name; a project's is asked in the project's, or by the tenant.
    actor, project = claims.publisher, claims.definitions_project
    address = definition_key(actor.tenant, kind, command.name, project)
    ask = Ask(
        command,
        actor,
        address,
        gate.topics.definition_commands,
        1,
        name_of(actor, f"/v1/{address.partition(b'/')[2].decode()}", key),
    )
    outcome = await gate.asker.answer(ask, ANSWER_TIMEOUT_S)
    if outcome is None:
        raise Problem(Refusal.UNAVAILABLE, "the decider has not answered yet: publish again", retry_after=1)
    if (problem := refusal_of(outcome)) is not None:
        raise _with_errors(problem)
    version, offset = _published(gate, (actor.tenant, project, command.name), kind, command, outcome)
    await gate.live.until(lambda: not gate.live.missing_adoptions(offset), ADOPTION_WAIT_S)
    missing = gate.live.missing_adoptions(offset)
    resource = {
        "name": command.name,
        "project": project,
        "version": version,
        "adopted": not missing,
        "pending": missing,
    }
    return gate.json(resource, 202 if missing else 200)


def _published(gate: Gate, place: Place, kind: str, command: Publishing, outcome: Outcome) -> tuple[int, int]:
    body: Message | None = outcome.body
    if isinstance(body, PolicyPublished | ToolPublished | PrincipalPublished):
        return body.version, outcome.last_offset
    # Published before, under another command: the version that has this very text.
    known = gate.live.definitions
    shelf = {"policy": known.policies, "tool": known.tools, "principal": known.principals}[kind]
    versions: list[Published] = shelf.get(place, [])
    text = command.definition if isinstance(command, k.PublishTool) else command.document
    same = [published for published in versions if published.document == text] or versions
    if not same:
        raise Problem(Refusal.UNAVAILABLE, "the definition is not known here yet: try again", retry_after=1)
    return same[-1].version, same[-1].offset


def _with_errors(problem: Problem) -> Problem:
    if problem.code is Refusal.INVALID and "errors" not in problem.fields:
        path, found, message = problem.detail.partition(": ")
        entry = {"path": path if found else "", "code": "invalid", "message": message or path}
        return Problem(problem.code, problem.detail, errors=[entry])
    return problem
