"""From a tool or principal as it was sent to the text that is published. Its author determines how long that takes.

Policies are read by the engine that judges by them: see `worker`.
"""

from __future__ import annotations

from typing import Any, Literal

from gateway.problems import Problem
from gateway.strictjson import canonical_text
from schemas.policy_problems import PolicyRefused, no_subjects
from schemas.principals import principal_from_value, principal_to_json
from schemas.refusals import Refusal
from schemas.tool_definition import tool_to_publish

Kind = Literal["tool", "principal"]


def text_of(kind: Kind, name: str, given: Any) -> str:
    """Return the definition as canonical JSON.

    Args:
        kind: its kind.
        name: the name to publish it under; the document must contain the same.
        given: parsed JSON.

    Raises:
        Problem: 422 invalid, with every error and its path.
    """
    return _tool(name, given) if kind == "tool" else _principal(name, given)


def _tool(name: str, given: Any) -> str:
    try:
        definition = tool_to_publish(name, given)
    except PolicyRefused as error:
        raise _refused(error) from error
    return canonical_text(definition, "definition")


def _principal(name: str, given: Any) -> str:
    try:
        document = principal_from_value({"principal": name, **given})
    except PolicyRefused as error:
        raise _refused(error) from error
    if document.principal != name:
        raise Problem(Refusal.INVALID, f"the document is of {document.principal!r}, not of {name!r}")
    # This is required only of new definitions, not of those already published.
    if faults := tuple(no_subjects("subjects", document.subjects)):
        raise _refused(PolicyRefused(faults))
    return principal_to_json(document)


def _refused(error: PolicyRefused) -> Problem:
    return Problem(Refusal.INVALID, str(error), errors=[problem.model_dump() for problem in error.problems])
