"""The process in which a gateway has definitions read, put together: `python -m ops.definition_reader`.

A question about a policy is `{name, given, tenant, project, policies, tools}`: the document as YAML text or parsed
JSON, under which name and for which project it would be published, and what is published there: the policies in force
as `[{document, version, project}]`, the document being canonical JSON, and the tools' names. The answer is
`{text, problems, difference}`. A question about calls that may be proposed is one of `ops.assessment`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from gateway.checking import worker
from ops.assessment import assessed
from schemas.canonical import parse_strict
from schemas.policy_document import PolicyDocument, policy_from_value, policy_to_json
from schemas.policy_problems import PolicyRefused, Problem
from schemas.policy_yaml import policy_value
from services.domain.policy.check import Beside, check_beside
from services.domain.policy.diff import diff
from services.domain.policy.shadowing import Standing


def read_policy(question: dict[str, Any]) -> dict[str, Any]:
    """What the engine says of a policy."""
    name, project, given = question["name"], question["project"], question["given"]
    standing, unread = _standing(question["policies"], question["tenant"])
    beside = Beside(question["tenant"], project, tuple(standing), frozenset(question["tools"]))
    try:
        value = policy_value(given) if isinstance(given, str) else given
    except PolicyRefused as error:
        return _answer(None, error.problems, None)
    document, problems = check_beside(value, name, beside)
    old = next((one.document for one in standing if (one.name, one.project) == (name, project)), None)
    return _answer(document, (*problems, *unread), old)


def _answer(
    document: PolicyDocument | None, problems: tuple[Problem, ...], old: PolicyDocument | None
) -> dict[str, Any]:
    publishable = document is not None and all(problem.severity == "warning" for problem in problems)
    return {
        "text": policy_to_json(document) if document is not None and publishable else None,
        "problems": [problem.model_dump() for problem in problems],
        "difference": None if old is None or document is None else _difference(old, document),
    }


def _difference(old: PolicyDocument, new: PolicyDocument) -> dict[str, Any]:
    """What differs in the documents; calls were not asked about."""
    found: dict[str, Any] = msgspec.to_builtins(diff(old, new))
    del found["calls"]
    return found


def _standing(rows: list[dict[str, Any]], tenant: str) -> tuple[list[Standing], list[Problem]]:
    """The policies in force, and a warning on each that this version cannot read."""
    found: list[Standing] = []
    unread: list[Problem] = []
    for row in rows:
        try:
            found.append(Standing(_read(row["document"]), row["version"], row["project"], tenant))
        except PolicyRefused as error:
            message = f"a policy in force cannot be read, and nothing is allowed until it is published again: {error}"
            unread.append(Problem(path="policy", code="unreadable", message=message, severity="warning"))
    return found, unread


@lru_cache(maxsize=512)
def _read(text: str) -> PolicyDocument:
    return policy_from_value(parse_strict(text))


if __name__ == "__main__":
    worker.main({"policy": read_policy, "assessment": assessed})
