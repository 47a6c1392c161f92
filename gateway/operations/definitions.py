"""Publishing policies, tools and principals: a version is in force where a partition has adopted it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema
from jsonschema.validators import validator_for

from gateway.asking import Ask, name_of
from gateway.bodies import ToolDefinition, read_body
from gateway.identity.doors import check_role
from gateway.live.definitions import Published
from gateway.live.outcome import Outcome
from gateway.operations.plan import ANSWER_TIMEOUT_S, Gate, Given, Reply, refusal_of
from gateway.problems import Problem
from gateway.strictjson import canonical_text
from schemas import commands as k
from schemas.events.definitions import PolicyPublished, PrincipalPublished, ToolPublished
from schemas.ids import definition_key, is_client_id
from schemas.limits import INPUT_SCHEMA_MAX_BYTES
from schemas.message import Message
from schemas.policy_document import PolicyDocument, parse_policy, policy_from_value, policy_to_json
from schemas.policy_problems import PolicyRefused
from schemas.principals import principal_from_value, principal_to_json
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
    check_role(claims.actor, "operator")
    parsed = _policy(document())
    if parsed.policy != name:
        raise Problem(Refusal.INVALID, f"the document is of the policy {parsed.policy!r}, not of {name!r}")
    command = k.PublishPolicy(name=name, document=policy_to_json(parsed))
    return await _publish(gate, claims, "policy", command, key)


async def publish_tool(gate: Gate, claims: Claims, name: str, given: Given, key: str | None) -> Reply:
    """Publish a tool's MCP definition; arguments and errors as `publish_policy`."""
    check_role(claims.actor, "operator")
    if not is_client_id(name):
        raise Problem(Refusal.INVALID, "a published tool's name is 1 to 128 of A-Za-z0-9._:-")
    definition = {"name": name, **given()}
    body = read_body(ToolDefinition, definition)
    if body.name != name:
        raise Problem(Refusal.INVALID, f"the definition is of the tool {body.name!r}, not of {name!r}")
    _check_schema(body.inputSchema)
    command = k.PublishTool(name=name, definition=canonical_text(definition, "definition"))
    return await _publish(gate, claims, "tool", command, key)


async def publish_principal(gate: Gate, claims: Claims, name: str, given: Given, key: str | None) -> Reply:
    """Publish a principal; needs the role admin. Arguments and errors as `publish_policy`."""
    check_role(claims.actor, "admin")
    try:
        document = principal_from_value({"principal": name, **given()})
    except PolicyRefused as error:
        raise _refused(error) from error
    if document.principal != name:
        raise Problem(Refusal.INVALID, f"the document is of {document.principal!r}, not of {name!r}")
    command = k.PublishPrincipal(name=name, document=principal_to_json(document))
    return await _publish(gate, claims, "principal", command, key)


async def _publish(gate: Gate, claims: Claims, kind: str, command: Publishing, key: str | None) -> Reply:
    actor = claims.actor
    ask = Ask(
        command,
        actor,
        definition_key(actor.tenant, kind, command.name),
        gate.topics.definition_commands,
        1,
        name_of(actor, f"/v1/{kind}/{command.name}", key),
    )
    outcome = await gate.asker.answer(ask, ANSWER_TIMEOUT_S)
    if outcome is None:
        raise Problem(Refusal.UNAVAILABLE, "the decider has not answered yet: publish again", retry_after=1)
    if (problem := refusal_of(outcome)) is not None:
        raise _with_errors(problem)
    version, offset = _published(gate, actor.tenant, kind, command, outcome)
    await gate.live.until(lambda: not gate.live.missing_adoptions(offset), ADOPTION_WAIT_S)
    missing = gate.live.missing_adoptions(offset)
    resource = {"name": command.name, "version": version, "adopted": not missing, "pending": missing}
    return gate.json(resource, 202 if missing else 200)


def _published(gate: Gate, tenant: str, kind: str, command: Publishing, outcome: Outcome) -> tuple[int, int]:
    body: Message | None = outcome.body
    if isinstance(body, PolicyPublished | ToolPublished | PrincipalPublished):
        return body.version, outcome.last_offset
    # Published before, under another command: the version that has this very text.
    known = gate.live.definitions
    shelf = {"policy": known.policies, "tool": known.tools, "principal": known.principals}[kind]
    versions: list[Published] = shelf.get((tenant, command.name), [])
    text = command.definition if isinstance(command, k.PublishTool) else command.document
    same = [published for published in versions if published.document == text] or versions
    if not same:
        raise Problem(Refusal.UNAVAILABLE, "the definition is not known here yet: try again", retry_after=1)
    return same[-1].version, same[-1].offset


def _policy(document: str | Any) -> PolicyDocument:
    try:
        return parse_policy(document) if isinstance(document, str) else policy_from_value(document)
    except PolicyRefused as error:
        raise _refused(error) from error


def _refused(error: PolicyRefused) -> Problem:
    return Problem(Refusal.INVALID, str(error), errors=[problem.model_dump() for problem in error.problems])


def _check_schema(schema: dict[str, Any]) -> None:
    if not isinstance(schema.get("$schema", ""), str):
        raise _misfit("inputSchema.$schema", "must be a string")
    if len(canonical_text(schema, "inputSchema").encode()) > INPUT_SCHEMA_MAX_BYTES:
        raise _misfit("inputSchema", f"is limited to {INPUT_SCHEMA_MAX_BYTES} bytes")
    try:
        validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(schema)
    except jsonschema.exceptions.SchemaError as error:
        errors = [{"path": f"inputSchema{error.json_path[1:]}", "code": "schema", "message": error.message}]
        raise Problem(
            Refusal.INVALID, f"inputSchema is not JSON Schema: {error.message}", errors=errors
        ) from error


def _misfit(path: str, message: str) -> Problem:
    errors = [{"path": path, "code": "schema", "message": message}]
    return Problem(Refusal.INVALID, f"{path} {message}", errors=errors)


def _with_errors(problem: Problem) -> Problem:
    if problem.code is Refusal.INVALID and "errors" not in problem.fields:
        path, found, message = problem.detail.partition(": ")
        entry = {"path": path if found else "", "code": "invalid", "message": message or path}
        return Problem(problem.code, problem.detail, errors=[entry])
    return problem
