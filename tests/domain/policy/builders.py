"""Short ways to write policies and calls."""

from typing import Any

from services.domain.policy import CallFacts, PolicySet
from tests.policy_documents import parse_policy

NOW_MS = 1_767_614_400_000
READ = {"annotations": {"readOnlyHint": True}}
WRITE = {"annotations": {"destructiveHint": True}}


def policies(*texts: str, tenant: str = "acme") -> PolicySet:
    result = PolicySet()
    for text in texts:
        document = parse_policy(text)
        result = result.with_policy(tenant, document.policy, 1, document)
    return result


def rules(text: str) -> PolicySet:
    """A set of one policy `p` for everyone with these rules, a YAML list."""
    return policies(f"policy: p\nrules:\n{text}")


def call(tool: str = "send_money", arguments: dict[str, Any] | None = None, **facts: Any) -> CallFacts:
    facts.setdefault("tool_definition", WRITE)
    return CallFacts(
        **{"tenant": "acme", "project": "web", "agent": "bot", "user": "", "workspace": "", **facts},
        tool=tool,
        arguments=arguments or {},
    )
