"""Tool annotations: those of the operator's published definition, and the few that an agent's claims can add.

MCP (specification 2025-06-18, "ToolAnnotations") calls the hints untrusted unless they come from a trusted
server; here only the published definition is trusted. Absent hints mean what MCP says: not read-only,
destructive, not idempotent, open world.
"""

from collections.abc import Mapping
from typing import Any

from schemas.plain_words import nearest

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
# The hints that an agent can claim for its own tool: only those that make a rule stricter.
CLAIMABLE = ("destructiveHint", "openWorldHint")


def claim_problem(claimed: Mapping[str, Any]) -> str | None:
    """The reason why an agent's claimed annotations are invalid, beginning with the name; None if they are valid.

    A misspelt hint would count as absent, and so as its opposite. Names other than hints are allowed.
    """
    for name in claimed:
        if name not in (*HINTS, "title") and (near := nearest(name, HINTS)) is not None:
            return f"{name}: unknown annotation; did you mean {near!r}?"
    return None


def published(definition: Mapping[str, Any] | None) -> dict[str, bool]:
    """The four hints of a published definition, with MCP's defaults for hints that it does not set.

    Args:
        definition: an MCP tool definition; None for an unknown tool, which gets the most dangerous hints.
    """
    stated = (definition or {}).get("annotations")
    hints = stated if isinstance(stated, Mapping) else {}
    destructive = hints.get("destructiveHint")
    # If a tool sets both, the more dangerous hint counts.
    read_only = hints.get("readOnlyHint") is True and destructive is not True
    return {
        "readOnlyHint": read_only,
        "destructiveHint": False if read_only else destructive is not False,
        "idempotentHint": hints.get("idempotentHint") is True or (definition or {}).get("idempotent") is True,
        "openWorldHint": hints.get("openWorldHint") is not False,
    }


def raised(hints: Mapping[str, bool], claimed: Mapping[str, Any]) -> dict[str, bool]:
    """The published hints with the agent's claims; only claims that make the tool more dangerous count."""
    result = dict(hints)
    for name in CLAIMABLE:
        if claimed.get(name) is True:
            result[name] = True
    if result["destructiveHint"]:
        result["readOnlyHint"] = False
    return result
