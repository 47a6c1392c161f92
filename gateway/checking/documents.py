"""From what was sent to the text that is published. How long it takes is for its author to decide: see `desk`."""

from __future__ import annotations

from typing import Any, Literal

from gateway.bodies import ToolDefinition, read_body
from gateway.problems import Problem
from gateway.strictjson import canonical_text
from schemas.json_schema import schema_problem
from schemas.policy_document import parse_policy, policy_from_value, policy_to_json, size_problems
from schemas.policy_problems import PolicyRefused
from schemas.principals import principal_from_value, principal_to_json
from schemas.refusals import Refusal

Kind = Literal["policy", "tool", "principal"]


def text_of(kind: Kind, name: str, given: Any) -> str:
    """The definition as canonical JSON.

    Args:
        kind: what it is.
        name: under which it is published; the document must say the same.
        given: parsed JSON; of a policy also YAML text.

    Raises:
        Problem: 422 invalid, with every error and where it stands.
    """
    if kind == "policy":
        return _policy(name, given)
    return _tool(name, given) if kind == "tool" else _principal(name, given)


def _policy(name: str, given: Any) -> str:
    try:
        document = parse_policy(given) if isinstance(given, str) else policy_from_value(given)
        if problems := size_problems(document):
            raise PolicyRefused(problems)
    except PolicyRefused as error:
        raise _refused(error) from error
    if document.policy != name:
        raise Problem(Refusal.INVALID, f"the document is of the policy {document.policy!r}, not of {name!r}")
    return policy_to_json(document)


def _tool(name: str, given: Any) -> str:
    definition = {"name": name, **given}
    body = read_body(ToolDefinition, definition)
    if body.name != name:
        raise Problem(Refusal.INVALID, f"the definition is of the tool {body.name!r}, not of {name!r}")
    if (problem := schema_problem(body.inputSchema)) is not None:
        path = f"inputSchema{problem.path}"
        errors = [{"path": path, "code": "schema", "message": problem.message}]
        raise Problem(Refusal.INVALID, f"{path} {problem.message}", errors=errors)
    return canonical_text(definition, "definition")


def _principal(name: str, given: Any) -> str:
    try:
        document = principal_from_value({"principal": name, **given})
    except PolicyRefused as error:
        raise _refused(error) from error
    if document.principal != name:
        raise Problem(Refusal.INVALID, f"the document is of {document.principal!r}, not of {name!r}")
    return principal_to_json(document)


def _refused(error: PolicyRefused) -> Problem:
    return Problem(Refusal.INVALID, str(error), errors=[problem.model_dump() for problem in error.problems])
