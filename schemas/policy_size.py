"""The limits of a policy document's size."""

from schemas.policy_document import PolicyDocument, conditions_of, policy_to_json
from schemas.policy_problems import Problem

DOCUMENT_MAX_CHARS = 256 * 1024
CONDITIONS_MAX_CHARS = 64 * 1024
PATTERNS_MAX = 5_000


def size_problems(document: PolicyDocument) -> tuple[Problem, ...]:
    """The limits that a document exceeds, since every decider must compile it. Policies in force are not checked."""
    conditions = sum(len(condition) for _, condition in conditions_of(document))
    patterns = sum(
        len((*(rule.match.tools or ()), *(rule.match.tools_like or ()))) for rule in document.rules
    )
    limits = (
        (len(policy_to_json(document)), DOCUMENT_MAX_CHARS, "characters as JSON"),
        (conditions, CONDITIONS_MAX_CHARS, "characters in its conditions together"),
        (patterns, PATTERNS_MAX, "tool patterns in its rules together"),
    )
    return tuple(
        Problem(path="policy", code="too_large", message=f"a policy has at most {most} {what}; split it")
        for found, most, what in limits
        if found > most
    )
