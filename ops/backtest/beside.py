"""What the published definitions say of a candidate, as `placet policy check --against` says it of a file."""

from __future__ import annotations

from ops.backtest.history import Candidate, History
from schemas.canonical import parse_strict
from schemas.ids import TENANT_WIDE
from schemas.policy_document import policy_from_value, policy_to_json
from schemas.policy_problems import PolicyRefused, Problem
from services.domain.policy.check import Beside, check_beside
from services.domain.policy.shadowing import Standing


def warnings_beside(history: History, candidate: Candidate) -> list[Problem]:
    """The warnings of a candidate in its place, beside the newest definitions of the log.

    Args:
        history: the definitions, read to their end.
        candidate: with its project.
    """
    project = candidate.project or TENANT_WIDE
    tools = history.newest.tools
    known = frozenset(
        name for tenant, of, name in tools if tenant == candidate.tenant and of in {project, TENANT_WIDE}
    )
    beside = Beside(candidate.tenant, project, tuple(_standing(history, candidate, project)), known)
    value = parse_strict(policy_to_json(candidate.document))
    _, problems = check_beside(value, candidate.document.policy, beside)
    return [one for one in problems if one.severity == "warning"]


def _standing(history: History, candidate: Candidate, project: str) -> list[Standing]:
    """The policies of the tenant in force that can be read; the others are told with the verdicts on them."""
    found = []
    for tenant, published in history.published_policies():
        if tenant != candidate.tenant or published.project not in {project, TENANT_WIDE}:
            continue
        try:
            document = policy_from_value(parse_strict(published.document))
        except PolicyRefused:
            continue
        found.append(Standing(document, published.version, published.project, tenant))
    return found
