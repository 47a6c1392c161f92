"""Tool annotations: what the operator published, and the little that an agent's own word can add.

MCP (specification 2025-06-18, "ToolAnnotations") calls the hints untrusted unless they come from a trusted
server; here only the published definition is trusted. Absent hints mean what MCP says: not read-only,
destructive, not idempotent, open world.
"""

from collections.abc import Mapping
from typing import Any

from schemas.plain_words import nearest

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
# What an agent may claim of its own tool: only what makes a rule stricter.
CLAIMABLE = ("destructiveHint", "openWorldHint")


def claim_problem(claimed: Mapping[str, Any]) -> str | None:
    """What is wrong with an agent's own annotations, beginning with the name; None where nothing is.

    A misspelt hint would count as one that is not there, and so as its opposite. Others may stand beside the hints.
    """
    for name in claimed:
        if name not in (*HINTS, "title") and (near := nearest(name, HINTS)) is not None:
            return f"{name}: unknown annotation; did you mean {near!r}?"
    return None


def published(definition: Mapping[str, Any] | None) -> dict[str, bool]:
    """The four hints of a published definition, with MCP's defaults where it says nothing.

    Args:
        definition: an MCP tool definition; None for an unknown tool, of which the worst is assumed.
    """
    stated = (definition or {}).get("annotations")
    hints = stated if isinstance(stated, Mapping) else {}
    destructive = hints.get("destructiveHint")
    # A tool that says both is taken at its more dangerous word.
    read_only = hints.get("readOnlyHint") is True and destructive is not True
    return {
        "readOnlyHint": read_only,
        "destructiveHint": False if read_only else destructive is not False,
        "idempotentHint": hints.get("idempotentHint") is True or (definition or {}).get("idempotent") is True,
        "openWorldHint": hints.get("openWorldHint") is not False,
    }


def raised(hints: Mapping[str, bool], claimed: Mapping[str, Any]) -> dict[str, bool]:
    """The published hints with the agent's claims; only those count that make the tool more dangerous."""
    result = dict(hints)
    for name in CLAIMABLE:
        if claimed.get(name) is True:
            result[name] = True
    if result["destructiveHint"]:
        result["readOnlyHint"] = False
    return result
